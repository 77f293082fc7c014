"""Screens: the dashboard, and the places that lie over it."""
