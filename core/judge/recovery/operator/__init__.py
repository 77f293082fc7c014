"""What a person orders, and what waits for a person: commands, questions, and the gate of ``restart.act``."""
