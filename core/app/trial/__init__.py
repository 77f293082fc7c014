"""Trials: some minutes of the run's command under one profile, measured."""
