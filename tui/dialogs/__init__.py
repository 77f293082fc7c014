"""Dialogs: confirmations, choices, help and details."""
