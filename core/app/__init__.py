"""The use cases, for every front end: start, check, adopt, trial, supervise, list and show runs."""
