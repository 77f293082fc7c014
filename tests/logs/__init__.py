"""Logs written for the tests, and the carriers in which a log arrives."""
