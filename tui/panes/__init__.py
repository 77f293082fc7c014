"""Panes: each takes a view and draws it."""
