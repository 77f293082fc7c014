"""Finds the log of a trainer that prints its steps into a file only: without it the run would be starting for ever.

Source: scripts that log by ``logging.FileHandler`` and print nothing. A file is followed by itself if the run's own
processes hold it open for writing, it is the only such file, and the steps in it rise. Others are only named, because
another program may write them. Nothing is looked for once the trainer's output shows a step.
"""

import os
import time
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from ..files.written_files import OpenFile, open_for_writing

LOOK_S = 5.0
"""Period of the looks; a trainer that has printed a step is not looked at."""
WAIT_S = 10.0
"""A trainer that prints has mostly done so by then."""
TAIL_BYTES = 16_384
SUFFIXES = (".log", ".txt", ".out", ".jsonl", ".csv", ".tsv", ".err")
"""Of files that are named although nobody of the run holds them open: each line may be written by opening them."""


class OwnLog:
    """``look`` is called in the log sensor's thread.

    ``pids``: of the run. ``folder``: the output folder. ``step_of``: the step that a text shows last, or None.
    ``has_steps``: whether the trainer's output shows any. ``followed``: paths that are followed already. ``follow``:
    follows one more. ``tell``: a sentence for people. ``logs_place``: where such a path is written.
    """

    def __init__(
        self,
        *,
        pids: Callable[[], Collection[int]],
        folder: str | None,
        step_of: Callable[[str], int | None],
        has_steps: Callable[[], bool],
        followed: Callable[[], Collection[str]],
        follow: Callable[[str], None],
        tell: Callable[[str], None],
        logs_place: str = "trainwatch.toml",
        open_files: Callable[[Iterable[int]], Iterable[OpenFile]] = open_for_writing,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._pids = pids
        self._folder = folder
        self._step_of = step_of
        self._has_steps = has_steps
        self._followed = followed
        self._follow = follow
        self._tell = tell
        self._logs_place = logs_place
        self._open_files = open_files
        self._clock = clock
        self._looked: float | None = None
        self._since: float | None = None
        self._steps: dict[str, int] = {}
        self._named: set[str] = set()

    def look(self) -> None:
        """Look, if it is time to and the trainer lives without a step."""
        now = self._clock()
        if self._looked is not None and now - self._looked < LOOK_S:
            return
        self._looked = now
        pids = self._pids()
        if not pids or self._has_steps():
            self._since = None
            self._steps.clear()
            return
        self._since = now if self._since is None else self._since
        known = {os.path.realpath(path) for path in self._followed()}
        held = {each.path for each in self._open_files(pids)} - known
        rising = [path for path in sorted(held | (self._texts() - known)) if self._rises(path)]
        if rising and now - self._since >= WAIT_S:
            self._answer([path for path in rising if path in held], rising)

    def _answer(self, held: list[str], rising: list[str]) -> None:
        if len(held) == 1:
            self._follow(held[0])
            self._steps.clear()
            self._tell(f"the trainer prints no step, but writes them to {held[0]}: it is followed, too")
            return
        new = [path for path in rising if path not in self._named]
        if new:
            self._named.update(new)
            logs = ", ".join(f'"{path}"' for path in new)
            self._tell(
                f"the trainer prints no step; its steps seem to be in {', '.join(new)}: name the one to follow in "
                f"{self._logs_place} (`logs = [{logs}]`)"
            )

    def _rises(self, path: str) -> bool:
        """Whether its end shows a step, and a higher one than at an earlier look."""
        step = self._step_of(_end_of(path))
        if step is None:
            return False
        before = self._steps.setdefault(path, step)
        return step > before

    def _texts(self) -> set[str]:
        """Files of the output folder that may be logs, by their names."""
        if self._folder is None:
            return set()
        try:
            with os.scandir(self._folder) as entries:
                return {os.path.realpath(e.path) for e in entries if e.name.endswith(SUFFIXES) and e.is_file()}
        except OSError:
            return set()


def _end_of(path: str) -> str:
    """The last lines of a text; empty if it is none, or cannot be read."""
    try:
        with Path(path).open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - TAIL_BYTES))
            data = file.read(TAIL_BYTES)
    except OSError:
        return ""
    return "" if b"\0" in data else data.decode("utf-8", "replace")
