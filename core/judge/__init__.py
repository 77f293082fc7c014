"""What observations mean and what to do: pure. ``Judge(knowledge).step(state, observation) -> (state, entries)``."""

from .knowledge import Knowledge
from .state import SNAPSHOT_VERSION, JudgeState, from_snapshot, to_snapshot
from .step import Judge

__all__ = ["SNAPSHOT_VERSION", "Judge", "JudgeState", "Knowledge", "from_snapshot", "to_snapshot"]
