"""Adopting a trainer as a run."""
