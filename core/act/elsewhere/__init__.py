"""Attempts whose trainer is not a process of ours to signal: in a container, of another user, on another host."""
