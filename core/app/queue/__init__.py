"""The queue: runs that are started when GPUs with enough free memory are there."""
