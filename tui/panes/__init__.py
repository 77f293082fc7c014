"""Widgets that each take a view and draw it."""
