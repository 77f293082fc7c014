"""The trainer's processes: identity, activity, terminal and end."""
