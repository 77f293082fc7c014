"""Stand-in trainers of three frameworks for the matrix of faults: real PyTorch, real saves, one module of faults."""
