"""Evaluations of checkpoints by the user's own command."""
