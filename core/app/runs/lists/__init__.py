"""Lists that people make, as front ends read them: what waits in the queue, how good checkpoints are."""
