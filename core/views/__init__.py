"""Views: pure projections of a run's story and its newest readings. Imports the model only."""
