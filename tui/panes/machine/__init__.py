"""What the GPU page and the host page draw, and the panes of GPU and memory on the dashboard."""
