"""Retention of one run: the prune rules over its output folders, remembering what was verified already."""

import os
from collections.abc import Callable, Container, Sequence
from pathlib import Path

from ...checkpoints.inspection import verify
from ...checkpoints.manage.pruning import apply_prune, plan_prune
from ...model.checkpoints.checkpoint import Checkpoint
from ...model.checkpoints.checkpoint_results import PrunePlan


class RunRetention:
    """Implements the actor's Retention for all output folders of a run; each keeps as many as the settings say.

    Called by one thread at a time. ``rated``: (real path, modification time) of what a person wants to keep.
    """

    def __init__(
        self,
        folders: Callable[[], Sequence[Path]],
        globs: Sequence[str] = (),
        rated: Callable[[], Container[tuple[str, float]]] = frozenset,
    ) -> None:
        self._folders = folders
        self._globs = globs
        self._rated = rated
        self._each: dict[Path, FolderRetention] = {}

    def plan(self, keep: int, *, deep: bool) -> tuple[Checkpoint, ...]:
        """Oldest first, folder by folder. Raises ValueError if no folder is known."""
        folders = self._folders()
        if not folders:
            raise ValueError("no output folder is watched")
        there = [folder for folder in folders if folder.is_dir()] or folders[:1]
        rated = self._rated()
        planned = (found for folder in there for found in self._of(folder).plan(keep, deep=deep))
        return tuple(found for found in planned if (os.path.realpath(found.path), found.mtime) not in rated)

    def delete(self, checkpoint: Checkpoint) -> str | None:
        """Delete one; it is inspected once more before."""
        return self._of(Path(checkpoint.path).parent).delete(checkpoint)

    def _of(self, folder: Path) -> "FolderRetention":
        return self._each.setdefault(folder, FolderRetention(folder, self._globs))


class FolderRetention:
    """The same for one folder."""

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
