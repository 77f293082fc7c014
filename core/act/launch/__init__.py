"""Starting an attempt: the runner process, its files, the trainer's terminal."""
