"""The newest values of runs in the Prometheus text format."""
