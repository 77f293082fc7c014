"""What it means and what to do. Pure: time comes in with the observation."""
