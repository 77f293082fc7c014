"""The folders that the run saves to, found by what its processes write."""
