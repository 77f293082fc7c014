"""What is known of the job that an attempt runs as."""
