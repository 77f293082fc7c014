"""Services for the screen: implementations of the Protocols in ``model.ports``."""
