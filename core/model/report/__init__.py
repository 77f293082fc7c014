"""What a report of a run tells beside its story."""
