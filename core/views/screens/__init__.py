"""What each numbered screen and each dialog shows."""
