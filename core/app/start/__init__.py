"""Making the folder of a run, and starting its supervisor."""
