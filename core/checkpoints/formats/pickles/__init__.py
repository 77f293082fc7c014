"""Pickles read without executing them, and what torch stores in them."""
