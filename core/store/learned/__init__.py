"""What earlier runs taught: habits, ends without a known cause, trials, rehearsals."""
