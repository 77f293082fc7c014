"""GPU telemetry: a child process that queries NVML, and which of the GPUs are the trainer's."""
