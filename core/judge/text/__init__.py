"""Log text as lines and fields: what the readers of progress and of failures both need."""
