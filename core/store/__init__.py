"""Files of a run: journal, metric history, trace, lock, control socket and state directory."""
