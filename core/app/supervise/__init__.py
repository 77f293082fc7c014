"""Supervising one run in the foreground or in a process of its own."""
