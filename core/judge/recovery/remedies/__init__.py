"""Changed settings after a failure: remedies, and the ramp over the ladder of profiles."""
