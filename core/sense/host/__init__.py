"""The machine: memory, processors, disk space, kernel log."""
