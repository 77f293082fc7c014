"""Shipped data: profiles, presets, failure catalogue, example trainers."""
