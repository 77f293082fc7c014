"""Showing the trainer's terminal or log: tmux window, pty client, log follower."""
