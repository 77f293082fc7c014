"""Sensors of the run's output directory: checkpoints and sample images."""
