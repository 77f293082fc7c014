"""How a run is now: one sentence, what is wrong, progress, readings with their levels."""
