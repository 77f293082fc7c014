"""Verbs that show trainwatch at work."""
