"""Rows of the shipped data files: presets, profiles, failure classes, log shapes and remedies."""
