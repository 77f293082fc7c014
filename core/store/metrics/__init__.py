"""The history of the metrics: what is kept of GPUs, host and progress, in SQLite."""
