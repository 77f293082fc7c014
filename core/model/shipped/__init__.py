"""Rows of the shipped data files: failure classes, log shapes and remedies."""
