"""Verbs that start a training."""
