"""The use cases, for every front end: plan, check, start, adopt, supervise, measure profiles, find and show runs."""
