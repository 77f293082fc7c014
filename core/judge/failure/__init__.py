"""From log text, exit status and kernel lines to the cause of a failure."""
