"""How the world is read: each sensor turns bytes into frozen observations."""
