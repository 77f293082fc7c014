"""Verbs that examine logs, checkpoints and past runs."""
