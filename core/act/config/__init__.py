"""The command line, environment and config copy of one launch."""
