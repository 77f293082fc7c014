"""What observations mean and what to do: pure. ``Judge(knowledge).step(state, observation) -> (state, entries)``."""
