"""The log viewer: reads and searches logs of any size in background threads."""
