"""Checks of what a run goes on from: its checkpoint, and whether model and data still fit it."""
