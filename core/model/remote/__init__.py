"""Other machines, and what goes over the line to them."""
