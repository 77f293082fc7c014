"""Making the GPUs ready for the next attempt."""
