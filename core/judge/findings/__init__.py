"""Findings about a run that goes on: health levels, disk, loss, pace."""
