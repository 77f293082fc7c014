"""GPU telemetry: a child process that asks NVML, and which of the GPUs are the trainer's."""
