"""Copies of verified checkpoints: to a second disk, or by the user's command."""
