"""Retention of one run: the prune rules over its output folder, remembering what was proven already."""

from collections.abc import Sequence
from pathlib import Path

from ...checkpoints.inspection import verify
from ...checkpoints.manage.pruning import PrunePlan, apply_prune, plan_prune
from ...model.checkpoints.checkpoint import Checkpoint


class FolderRetention:
    """Implements the actor's Tidy. Called by one thread at a time."""

    def __init__(self, directory: Path, globs: Sequence[str] = ()) -> None:
        self._directory = directory
        self._globs = globs
        self._proven: dict[tuple[str, int, float], Checkpoint] = {}

    def plan(self, keep: int, *, deep: bool) -> tuple[Checkpoint, ...]:
        """Oldest first. The checkpoints that stay are read once each, not after every save."""
        plan = plan_prune(self._directory, keep, deep=deep, prove=self._prove, globs=self._globs)
        stay = {kept.checkpoint.path for kept in plan.keep}
        self._proven = {key: found for key, found in self._proven.items() if key[0] in stay}
        return tuple(reversed(plan.delete))

    def delete(self, checkpoint: Checkpoint) -> str | None:
        """One alone; it is looked at once more before it goes."""
        alone = PrunePlan(
            directory=str(self._directory), keep=(), delete=(checkpoint,), freed_bytes=0, resume_point=None
        )
        outcome = apply_prune(alone)
        return outcome.refused[0][1] if outcome.refused else None

    def _prove(self, path: Path) -> Checkpoint:
        found = verify(path, deep=False)
        key = (str(path), found.size_bytes, found.mtime)
        known = self._proven.get(key)
        if known is None:
            known = verify(path, deep=True)
            self._proven[key] = known
        return known
