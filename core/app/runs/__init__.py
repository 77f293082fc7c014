"""Finding runs and reading their state from outside."""
