"""Verbs that watch runs."""
