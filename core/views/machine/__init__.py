"""The GPU page and the host page as values."""
