"""What the GPU page and the host page draw."""
