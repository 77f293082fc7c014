"""Checks of the machine: disks, GPUs, memory, host."""
