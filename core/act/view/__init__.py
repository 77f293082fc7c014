"""Showing the trainer's terminal or log to people: tmux, pty client, log follower."""
