"""Sending notices to people."""
