"""Which of the files that were written are checkpoints of the run, and what says that the run wrote them."""

import os
from collections.abc import Callable, Collection
from pathlib import Path
from typing import NamedTuple

from ....model.checkpoints.checkpoint import Checkpoint
from ....model.checkpoints.other_files import kind_of_name
from ....model.observation import OutputSeen
from ....model.ports.supervision import AttemptTarget, Clock, Inbox
from .writer_evidence import Evidence, WriterEvidence

LONGEST_WRITE_S = 120.0
"""One that is not complete after this long is left to its next event."""

CheckpointLook = Callable[[Path, Collection[Path]], Checkpoint | None]
"""Path of a file, folders that are no checkpoints → the checkpoint that it belongs to. May raise OSError."""


class Written(NamedTuple):
    """A file that was written: when first and when last (monotonic seconds)."""

    first: float
    last: float


class Followed(NamedTuple):
    """An attempt whose files are examined. ``begun_wall``: seconds since the epoch. ``made``: folders made in it."""

    target: AttemptTarget
    begun_wall: float
    over: bool
    made: Collection[str]


class FoundOutputs:
    """Puts an ``OutputSeen`` for each checkpoint of the run in a folder that is not watched, once for each state of it.

    ``watched``: folders whose checkpoints are watched.
    """

    def __init__(
        self,
        *,
        inbox: Inbox,
        clock: Clock,
        watched: Callable[[], Collection[str]],
        writers: WriterEvidence,
        checkpoint_of: CheckpointLook,
        state_of: CheckpointLook,
    ) -> None:
        self._inbox = inbox
        self._clock = clock
        self._watched = watched
        self._writers = writers
        self._checkpoint_of = checkpoint_of
        self._state_of = state_of
        self._reported: set[tuple[str, float]] = set()

    def examine(
        self,
        files: dict[str, Written],
        now: float,
        *,
        roots: Collection[str],
        followed: Followed,
        late: bool,
        last: bool,
    ) -> dict[str, Written]:
        """Examine ``files``; returns those to be examined again, because they are still being written.

        ``late``: nobody may have looked when they were written. ``last``: none is examined again.
        """
        watched = {os.path.realpath(folder) for folder in self._watched()}
        stops = {Path(folder) for folder in (*roots, *watched)}
        unknown: set[tuple[str, str]] = set()
        again: dict[str, Written] = {}
        for path, written in files.items():
            found = _inspect(Path(path), stops, self._state_of if late else self._checkpoint_of)
            if found is None:
                continue
            folder = str(Path(found.path).parent)
            key = (found.path, found.mtime)
            alike = (folder, kind_of_name(found.name))
            if folder in watched or key in self._reported or alike in unknown:
                continue
            if found.verdict in {"torn", "writing"} and now - written.first < LONGEST_WRITE_S and not last:
                again[path] = Written(written.first, now)
                continue
            copied = found.mtime < followed.begun_wall
            wall = _changed_wall(found) if copied and late else found.mtime
            evidence = None if wall < followed.begun_wall else self._evidence(found, written, followed, late=late)
            if evidence is None or (found.unknown_make and not evidence.sure and not late):
                continue
            self._reported.add(key)
            text, sure = evidence
            if copied:  # so its time says nothing of its age
                sure = False
            if found.unknown_make and late:  # it may be anything, so that only a person can tell; one of a kind says it
                unknown.add(alike)
                sure = False
            self._inbox.put(
                OutputSeen(
                    t=self._clock.now(),
                    folder=folder,
                    path=found.path,
                    evidence=f"{Path(found.path).name}: {text}",
                    sure=sure,
                    mtime=wall,
                    unknown_make=found.unknown_make,
                )
            )
        return again

    def _evidence(self, found: Checkpoint, written: Written, followed: Followed, *, late: bool) -> Evidence | None:
        """How it is known that the run wrote it; None if nothing says so.

        ``late``: then None only if another process or run wrote it.
        """
        held = self._writers.held(found, followed.made)
        if held is not None:
            return held
        if late:
            return self._writers.of_late_place(found, followed.target, written.first, over=followed.over)
        return self._writers.of_place(found, followed.target, written.first)


def _inspect(path: Path, stops: Collection[Path], look: CheckpointLook) -> Checkpoint | None:
    try:
        return look(path, stops)
    except OSError:
        return None


def _changed_wall(found: Checkpoint) -> float:
    """When its entry was changed last: made, renamed or written, whatever modification time it was given."""
    try:
        return Path(found.path).stat().st_ctime
    except OSError:
        return 0.0
