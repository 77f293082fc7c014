"""Which checkpoint is to be copied off the machine next."""
