"""The run's output directory: checkpoints and sample images that appear in it."""
