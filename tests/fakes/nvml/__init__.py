"""A stand-in for NVIDIA's driver library, in C, steered by a state file; and pytest's way to it."""
