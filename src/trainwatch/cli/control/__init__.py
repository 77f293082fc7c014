"""Verbs that control a run."""
