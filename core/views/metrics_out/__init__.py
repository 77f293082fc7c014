"""The newest values of runs for other programs: Prometheus."""
