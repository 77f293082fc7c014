"""Lists that people make: the runs that wait, and what they think of checkpoints."""
