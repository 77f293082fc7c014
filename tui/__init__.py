"""The screen: a window on a run, never its owner."""
