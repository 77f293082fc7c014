"""Taking over a trainer that was started by hand."""
