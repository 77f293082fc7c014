"""Checkpoints of several files: directories of known trainers, and shards."""
