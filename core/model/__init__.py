"""Frozen values without I/O. Every other package may import this one; it imports none of them."""
