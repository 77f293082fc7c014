"""The Protocols between packages: who needs something asks for a port; wiring passes the implementation in."""
