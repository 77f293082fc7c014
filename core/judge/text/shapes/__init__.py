"""How a line of each kind is read: bars, lines of a known shape, rows of a table, any other words."""
