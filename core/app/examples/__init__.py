"""Runs of the example trainers that trainwatch ships: the demo and the drill."""
