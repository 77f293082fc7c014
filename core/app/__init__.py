"""The use cases, for every front end: plan, check, start, adopt, supervise, try profiles, find and show runs."""
