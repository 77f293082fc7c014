"""The dashboard: everything about one run on one screen."""
