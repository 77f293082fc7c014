"""What is written down about an attempt before it is ended."""
