"""What the keys do to the run: asked for in dialogs, done in threads, told in the footer."""
