"""Verbs that prepare a run."""
