"""Metrics for other programs: series as files, and the newest values for Prometheus."""
