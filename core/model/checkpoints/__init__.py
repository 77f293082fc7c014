"""Checkpoints: the value itself, the meaning of names and suffixes, and the jobs that work on them."""
