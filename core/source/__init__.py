"""The trainer's own source, read without running any of it: which options it has and where their values go."""
