"""Where the values of a trainer's options go in its source."""
