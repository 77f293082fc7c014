"""What could be started, what a start would be, and what could end it."""
