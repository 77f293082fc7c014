"""The ranks of a distributed training: their processes and launchers, and the files that torchrun keeps for each.

``LOG_DIR/RUN/attempt_K/LOCAL_RANK/{stdout.log,stderr.log,error.json}``. An agent counts its own restarts: a healthy
one uses ``attempt_0`` again after another one failed, and its log files begin anew. So a file that became shorter is
another one, and what a rank left is read when its process is gone. ``error.json`` is written by ``@record``; there is
none after a signal. Source: torch.distributed.elastic, torch.distributed.run (2.13).

Standard library only, no newer Python than 3.8: jobs of Slurm have a copy of this file on their nodes.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter, deque
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from .processes import Process

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
        return tail_of(self.folder / "stderr.log", TEXT_CHARS)


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
    lines = tail_of(path, TAIL_BYTES).replace("\r", "\n").split("\n")
    return next((line.strip()[:LINE_KEPT] for line in reversed(lines) if line.strip()), "")


def tail_of(path: str | Path | None, count: int) -> str:
    """The last bytes of a file as text; empty if it cannot be read."""
    try:
        with Path(path or "").open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - count))
            return file.read(count).decode("utf-8", "replace")
    except OSError:
        return ""


VARIABLES = (b"RANK", b"OMPI_COMM_WORLD_RANK", b"PMI_RANK", b"LOCAL_RANK")
"""torchrun and accelerate, Open MPI, MPICH; the first that is set. The last one says nothing on several nodes."""


class Place(NamedTuple):
    """What the environment of a rank tells. ``folder``: of its log and error files, "" = there is none."""

    rank: int
    folder: str = ""
    max_restarts: int | None = None
    world: int = 1


def place_in(variables: Iterable[bytes], names: Sequence[bytes] = VARIABLES) -> Place | None:
    """The rank that an environment names; None = none."""
    told = dict(each.partition(b"=")[::2] for each in variables)
    numbers = {name: int(value) for name, value in told.items() if value.isdigit()}
    rank = next((numbers[name] for name in names if name in numbers), None)
    if rank is None:
        return None
    folder = told.get(b"TORCHELASTIC_ERROR_FILE", b"").rpartition(b"/")[0]
    return Place(rank, os.fsdecode(folder), numbers.get(b"TORCHELASTIC_MAX_RESTARTS"), numbers.get(b"WORLD_SIZE", 1))


class RankSeen(NamedTuple):
    """A rank and what its log file tells (``Told``). ``state``: the letter of ``/proc/PID/stat``."""

    rank: int
    pid: int
    state: str
    line: str = ""
    line_age_s: float | None = None
    earlier: str = ""
    earlier_age_s: float | None = None


class AgentSeen(NamedTuple):
    """A launcher of ranks (``Called``). ``workers``: of its processes that live."""

    pid: int
    workers: int
    max_restarts: int | None
    join_s: float | None


class Ranks:
    """The ranks among the processes of a training, and their launchers.

    The ranks are told by the environment that their launcher gave them, which is read once: it does not change after
    an exec. Loader workers inherit the environment of their rank: only the topmost process with a rank stands for it.
    An agent of torchrun is the parent of a rank whose environment names an error file; it may outlive its workers.

    ``variables_of``: the environment of a process. ``several``: there are, or were, several ranks; until then none is
    told.
    """

    def __init__(
        self,
        variables_of: Callable[[int], list[bytes] | None],
        names: Sequence[bytes] = VARIABLES,
        *,
        own_clock: bool = True,
        several: bool = False,
    ) -> None:
        self._variables_of, self._names = variables_of, names
        self._several = several
        self._known: dict[tuple[int, int], Place | None] = {}
        self._seen: set[tuple[int, int]] = set()
        self._agents: dict[tuple[int, int], Called] = {}
        self._files = RankFiles(own_clock=own_clock)

    def look(self, tree: Mapping[int, Process], t: float) -> tuple[list[RankSeen], list[AgentSeen]]:
        """The ranks now, lowest first, and their launchers. ``t``: run seconds."""
        keys = {process.key for process in tree.values()}
        self._known = {key: place for key, place in self._known.items() if key in keys}
        # between fork and exec a process has the environment of its parent: it is read at the second look
        for key in (keys & self._seen) - self._known.keys():
            self._known[key] = place = place_in(self._variables_of(key[0]) or (), self._names)
            called = torchrun_in(key[0]) if place is None else None
            if called is not None:
                self._agents[key] = called
        self._seen = keys
        places = {process.pid: self._known.get(process.key) for process in tree.values()}
        top: list[tuple[Process, Place]] = []
        for process in tree.values():
            place, above = places[process.pid], places.get(process.parent)
            if place is not None and (above is None or above.rank != place.rank):
                top.append((process, place))
        self._several = self._several or bool(self._agents) or len(top) > 1 or any(place.world > 1 for _, place in top)
        if not self._several:
            return [], []
        for process, place in top:
            launcher = tree.get(process.parent)
            if place.folder and launcher is not None:
                known = self._agents.get(launcher.key)
                self._agents[launcher.key] = Called(place.max_restarts, None if known is None else known.join_s)
        there = {process.key for process in tree.values() if process.state not in "ZX"}
        self._agents = {key: called for key, called in self._agents.items() if key in there}
        workers = Counter(process.parent for process, _ in top if process.state not in "ZX")
        agents = [AgentSeen(key[0], workers[key[0]], *called) for key, called in sorted(self._agents.items())]
        return sorted(self._rank(process, place, t) for process, place in top), agents

    def _rank(self, process: Process, place: Place, t: float) -> RankSeen:
        told = self._files.look(place.folder, place.rank, process.pid, t) if place.folder else Told()
        return RankSeen(place.rank, process.pid, process.state, *told)

    def ended(self, t: float, *, over: bool) -> list[Left]:
        """What ranks left about their end since the last call. ``over``: no process of the run lives."""
        return self._files.ended(t, over=over)
