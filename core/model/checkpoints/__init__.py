"""Checkpoints: the value itself, what names and suffixes say, and the jobs that work on them."""
