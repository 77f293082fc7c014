"""What follows a failure: the choice, and the stages of a restart."""
