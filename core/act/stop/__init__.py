"""Stopping and pausing an attempt."""
