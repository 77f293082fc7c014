"""The supervisor: one loop that judges observations, writes the journal and performs decisions."""
