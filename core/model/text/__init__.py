"""Text that comes from elsewhere: control characters, secrets, log lines and path patterns."""
