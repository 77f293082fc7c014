"""What a log has shown so far: the step of the run, its losses, the first lines of the attempt."""
