"""What may be done with checkpoints: back up, prune, compare."""
