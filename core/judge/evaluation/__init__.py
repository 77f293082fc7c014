"""Scores of checkpoints: when an evaluation begins and ends, and where."""
