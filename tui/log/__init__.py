"""The logs of a run: read and searched in threads, one stretch held, jumped in, shown."""
