"""What each kind of observation changes in the judge's state."""
