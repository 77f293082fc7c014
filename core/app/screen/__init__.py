"""What the screen asks of the packages of core, behind the Protocols that it defines."""
