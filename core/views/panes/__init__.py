"""What each pane of the dashboard shows."""
