"""Retention of one run: the prune rules over its output folder, remembering what was verified already."""

from collections.abc import Sequence
from pathlib import Path

from ...checkpoints.inspection import verify
from ...checkpoints.manage.pruning import apply_prune, plan_prune
from ...model.checkpoints.checkpoint import Checkpoint
from ...model.checkpoints.checkpoint_results import PrunePlan


class FolderRetention:
    """Implements the actor's Tidy. Called by one thread at a time."""

    def __init__(self, directory: Path, globs: Sequence[str] = ()) -> None:
        self._directory = directory
        self._globs = globs
        self._verified: dict[tuple[str, int, float], Checkpoint] = {}

    def plan(self, keep: int, *, deep: bool) -> tuple[Checkpoint, ...]:
        """Oldest first. The checkpoints that stay are read once each, not after every save."""
        plan = plan_prune(self._directory, keep, deep=deep, verify_deep=self._verify, globs=self._globs)
        stay = {kept.checkpoint.path for kept in plan.keep}
        self._verified = {key: found for key, found in self._verified.items() if key[0] in stay}
        return tuple(reversed(plan.delete))

    def delete(self, checkpoint: Checkpoint) -> str | None:
        """Delete one; it is inspected once more before."""
        alone = PrunePlan(
            directory=str(self._directory), keep=(), delete=(checkpoint,), freed_bytes=0, resume_point=None
        )
        outcome = apply_prune(alone)
        return outcome.refused[0][1] if outcome.refused else None

    def _verify(self, path: Path) -> Checkpoint:
        found = verify(path, deep=False)
        key = (str(path), found.size_bytes, found.mtime)
        known = self._verified.get(key)
        if known is None:
            known = verify(path, deep=True)
            self._verified[key] = known
        return known
