"""Screens: the dashboard, and the dialogs that open over it."""
