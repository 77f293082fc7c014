"""Evidence of an attempt, collected before it is ended: stacks, /proc, logs, GPUs, launch record."""
