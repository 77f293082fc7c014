"""Key 7: the charts of a run's metrics."""
