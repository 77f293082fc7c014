"""What is remembered: journal, metric history, lock, control socket, state directory."""
