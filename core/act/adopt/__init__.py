"""Adopting a trainer that was started by hand: its process, its log, its tmux pane."""
