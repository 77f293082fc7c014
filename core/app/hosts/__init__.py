"""Other machines: which there are, and running trainwatch there."""
