"""What one line shows: counters, losses, times and other values, by their name or by the form of the line."""
