"""What torchrun shows of itself: its own command line, and the files that it keeps for each rank.

``LOG_DIR/RUN/attempt_K/LOCAL_RANK/{stdout.log,stderr.log,error.json}``. An agent counts its own restarts: a healthy
one uses ``attempt_0`` again after another one failed, and its log files begin anew. So a file that became shorter is
another one, and what a rank left is read when its process is gone. ``error.json`` is written by ``@record``; there is
none after a signal. Source: torch.distributed.elastic, torch.distributed.run (2.13).

Standard library only, no newer Python than 3.7: jobs of Slurm have a copy of this file on their nodes.
"""

from __future__ import annotations

import json
import os
import time
from collections import deque
from pathlib import Path
from typing import NamedTuple

RUN = "torch.distributed.run"
LOGS = ("stdout.log", "stderr.log")
TAIL_BYTES = 2048
"""Bytes read from the end of a log file, for its newest line: the line of a step is shorter."""
LINE_KEPT = 120
"""Characters kept of a line."""
APART_S = 10.0
"""Seconds between the lines that are kept for the pace of a rank."""
KEPT = 6
"""Number of lines kept for the pace: they span a minute."""
ERROR_BYTES = 1 << 20
"""An error file that is larger is not read."""
TEXT_CHARS = 4000
"""Characters kept of what a rank left: the end of a traceback names the error."""
JOIN_S = 600.0
"""How long torchrun waits for the other nodes if it is not told (``join_timeout``, and ``timeout`` of a static one)."""
LEFT_S = 3.0
"""Wait for the error file after a process ended: it is written before the end, but disks of nodes lag."""


class Told(NamedTuple):
    """The newest line of a rank and an earlier one, each with its age in seconds; "" and None = not known."""

    line: str = ""
    line_age_s: float | None = None
    earlier: str = ""
    earlier_age_s: float | None = None


class Left(NamedTuple):
    """What a rank left about its end. ``wall``: when it wrote that, seconds since the epoch; None = not known."""

    rank: int
    pid: int
    text: str
    wall: float | None


class Called(NamedTuple):
    """How a torchrun of several nodes was called. ``most``: restarts of its workers by itself; None = not told.

    ``join_s``: how long it waits for the other nodes before it gives up; None = not known.
    """

    most: int | None
    join_s: float | None


def torchrun_in(pid: int) -> Called | None:
    """What the command line of this process tells; None if it is no torchrun, or one of a single node."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "replace").split("\0")
    except OSError:
        return None
    if "torchrun" not in [word.rpartition("/")[2] for word in words[:2]] and words[1:3] != ["-m", RUN]:
        return None
    told: dict[str, str] = {}
    for at, word in enumerate(words):
        name, equals, value = word.partition("=")
        told.setdefault(name.lstrip("-").replace("_", "-"), value if equals else "".join(words[at + 1 : at + 2]))
    if "standalone" in told or told.get("nnodes", "1").rpartition(":")[2] == "1":
        return None
    conf = dict(each.strip().split("=", 1) for each in told.get("rdzv-conf", "").split(",") if "=" in each)
    join, most = conf.get("join_timeout", conf.get("timeout", "")), told.get("max-restarts", "")
    return Called(int(most) if most.isdigit() else None, float(join) if join.isdigit() else JOIN_S)


class _Files:
    """The files of one rank, for one start of the workers."""

    def __init__(self, folder: str, rank: int, pid: int, *, own_clock: bool) -> None:
        self.folder, self.rank, self.pid = Path(folder), rank, pid
        self.seen_t: float | None = None
        self.told = False
        self.error_at = _changed(self.folder / "error.json")
        self._own_clock = own_clock
        self._sizes: dict[str, int] = {}
        self._lines: deque[tuple[float, str]] = deque(maxlen=KEPT)
        self._newest: tuple[float, str] | None = None

    def look(self, t: float) -> Told:
        self.seen_t = t
        for name in LOGS:
            path = self.folder / name
            try:
                stat = path.stat()
            except OSError:
                continue
            if stat.st_size == self._sizes.get(name, 0):
                continue
            first = name not in self._sizes and self._own_clock
            self._sizes[name] = stat.st_size
            line = _last_line(path)
            if line:
                at = t - max(0.0, time.time() - stat.st_mtime) if first else t
                self._newest = (at, line)
                if not self._lines or at - self._lines[-1][0] >= APART_S:
                    self._lines.append(self._newest)
        if self._newest is None:
            return Told()
        at, line = self._newest
        before_t, before = self._lines[0]
        if before_t == at:
            return Told(line, max(0.0, t - at))
        return Told(line, max(0.0, t - at), before, t - before_t)

    def left(self) -> tuple[str, float | None] | None:
        """What the rank left about its end, and when it wrote that; None = nothing, or nothing yet."""
        path = self.folder / "error.json"
        changed = _changed(path)
        if changed is not None and changed != self.error_at:
            return _error_of(path)
        return None

    def last_words(self) -> str:
        """The end of what it wrote to its standard error."""
        return _tail(self.folder / "stderr.log", TEXT_CHARS)


class RankFiles:
    """Reads the files of ranks that live, and what those left whose process is gone.

    ``own_clock``: the files are on a disk of this machine, so that their times can be compared with its clock. Else the
    age of a line counts from when it was first seen.
    """

    def __init__(self, *, own_clock: bool = True) -> None:
        self._own_clock = own_clock
        self._ranks: dict[tuple[str, int], _Files] = {}

    def look(self, folder: str, rank: int, pid: int, t: float) -> Told:
        """Read the log files of a rank that lives. ``t``: run seconds."""
        files = self._ranks.get((folder, pid))
        if files is None:
            files = self._ranks[folder, pid] = _Files(folder, rank, pid, own_clock=self._own_clock)
        return files.look(t)

    def ended(self, t: float, *, over: bool) -> list[Left]:
        """What ranks left since the last call, the earliest first. ``over``: no process of the run lives."""
        found: list[Left] = []
        for key, files in list(self._ranks.items()):
            left = None if files.told else files.left()
            gone_s = t - (files.seen_t if files.seen_t is not None else t)
            past = over or gone_s > LEFT_S
            if left is None and past and not files.told:
                left = (files.last_words(), None)
            if left is not None and left[0].strip():
                files.told = True
                found.append(Left(files.rank, files.pid, left[0], left[1]))
            if past:
                del self._ranks[key]
        return sorted(found, key=lambda each: (each.wall is None, each.wall or 0.0))


def _changed(path: Path) -> int | None:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return None


def _error_of(path: Path) -> tuple[str, float | None] | None:
    """The text of an error file, and its time; None while it cannot be read, such as when it is being written."""
    try:
        if path.stat().st_size > ERROR_BYTES:
            return None
        told = json.loads(path.read_bytes())["message"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if not isinstance(told, dict):
        return (told[-TEXT_CHARS:], None) if isinstance(told, str) else None
    extra = told.get("extraInfo")
    if not isinstance(extra, dict):
        extra = {}
    at = str(extra.get("timestamp", ""))
    text = str(extra.get("py_callstack") or told.get("message") or "")
    return text[-TEXT_CHARS:], float(at) if at.isdigit() else None


def _last_line(path: Path) -> str:
    lines = _tail(path, TAIL_BYTES).replace("\r", "\n").split("\n")
    return next((line.strip()[:LINE_KEPT] for line in reversed(lines) if line.strip()), "")


def _tail(path: Path, count: int) -> str:
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - count))
            return file.read(count).decode("utf-8", "replace")
    except OSError:
        return ""
