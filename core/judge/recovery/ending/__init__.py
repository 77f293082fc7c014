"""Whether the training is done: the proof of an end, and what follows an exit."""
