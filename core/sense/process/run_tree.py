"""Which processes belong to an attempt, and reading them without a look at every process of the machine each time."""

import os
import pwd
import threading
import time
from collections import deque
from collections.abc import Mapping

from ...model.ports import AttemptTarget
from ...model.run import ProcessIdentity
from ...model.wrappers import CONTAINER_FILE, ContainerRecord
from ...processes import (
    TICKS_PER_S,
    Process,
    all_processes,
    boot_id,
    comm_of,
    owner_of,
    read_children,
    read_process,
    status_of,
    words_of,
)
from ...spool import read_record

SCAN_S = 4.0
"""Longest time until a process is seen that a second thread of the trainer started."""
ALL_S = 60.0
"""Period in which all processes of the machine are read; in between those are that were not there before."""
STACK_PROBE = b"trainwatch.core.act.evidence.stack_probe"
"""Module that the runner starts to see stacks, as a word of its command line."""


def tree_of(target: AttemptTarget, processes: Mapping[int, Process]) -> dict[int, Process]:
    """The members among ``processes``: trainer and descendants, other descendants of the runner, the container's.

    Workers whose parent died are children of the runner (a subreaper). The runner itself is not a member, nor is the
    stack probe that it starts: what it reads and computes is no sign of life of the trainer.
    """
    children: dict[int, list[int]] = {}
    for stat in processes.values():
        children.setdefault(stat.parent, []).append(stat.pid)
    trainer, runner = _living(target.trainer, processes), _living(target.runner, processes)
    # The first process of a container is no child of the runner.
    container = read_record(target.directory, CONTAINER_FILE, ContainerRecord)
    inside = None if container is None else _living(container.identity, processes)
    waiting = deque(pid for pid in (trainer, inside) if pid is not None)
    if runner is not None:
        waiting.extend(pid for pid in children.get(runner, ()) if not _is_of_runner(pid, runner))
    members: dict[int, Process] = {}
    while waiting:
        pid = waiting.popleft()
        if pid not in members and pid in processes and pid != runner:
            members[pid] = processes[pid]
            waiting.extend(children.get(pid, ()))
    return members


def _is_of_runner(pid: int, runner: int) -> bool:
    """Whether this child of the runner is its stack probe, also before the probe's program was loaded (``exec``)."""
    words = words_of(pid)
    return STACK_PROBE in words or (any(words) and words == words_of(runner))


def tree_pids(target: AttemptTarget) -> frozenset[int]:
    return frozenset(tree_of(target, all_processes()))


def _living(identity: ProcessIdentity | None, processes: Mapping[int, Process]) -> int | None:
    stat = None if identity is None else processes.get(identity.pid)
    if identity is None or stat is None or identity.boot_id != boot_id():
        return None
    return stat.pid if stat.start_ticks == identity.start_ticks else None


class RunTree:
    """Reads the members of one attempt's tree. Thread-safe: the sensors of a run share one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._target: AttemptTarget | None = None
        self._members: dict[int, Process] = {}
        self._children: set[int] = set()
        self._scan_at = self._all_at = self._looked_at = 0.0
        self._there: set[str] = set()
        """Names in ``/proc`` at the last search."""

    def look(self, target: AttemptTarget, *, max_age_s: float = 0.0) -> dict[int, Process]:
        """``stat`` of each member by pid, as it was ``max_age_s`` seconds ago at most.

        The tree is searched anew if a member has ended or has another child, and if there is one every ``SCAN_S``.
        """
        with self._lock:
            now = time.monotonic()
            anew = target != self._target or now >= self._all_at
            if not anew and now >= self._scan_at:
                self._scan_at, anew = now + SCAN_S, self._has_grown(target)
            if not anew:
                if now - self._looked_at < max_age_s:
                    return self._members
                known = {
                    pid: stat
                    for pid, was in self._members.items()
                    if (stat := read_process(pid)) is not None and stat.key == was.key
                }
                if known and len(known) == len(self._members) and self._children_of(target) <= self._children:
                    self._members, self._looked_at = known, now
                    return known
            self._target, self._scan_at, self._all_at, self._looked_at = target, now + SCAN_S, now + ALL_S, now
            self._there = set(os.listdir("/proc"))  # noqa: PTH208
            self._members = tree_of(target, all_processes())
            self._children = self._children_of(target)
            return self._members

    def _has_grown(self, target: AttemptTarget) -> bool:
        """Whether a new process is a child of a member or of the runner, or there is a container, whose are neither."""
        there = set(os.listdir("/proc"))  # noqa: PTH208
        new, self._there = there - self._there, there
        near = {*self._members, -1 if target.runner is None else target.runner.pid}
        started = (read_process(int(name)) for name in new if name.isdigit())
        by_them = any(each is not None and each.parent in near for each in started)
        return by_them or status_of(f"{target.directory}/{CONTAINER_FILE}") is not None

    def _children_of(self, target: AttemptTarget) -> set[int]:
        """Children of the first thread of each member and of the runner; of other threads only a search finds them."""
        runner = () if target.runner is None else (target.runner.pid,)
        return {child for pid in (*self._members, *runner) for child in read_children(pid)}


# Who a process belongs to, and its command, as people write them.

COMMAND_CHARACTERS = 400


class UserNames:
    """Names of users. A directory service that does not answer delays nothing: the number is shown until it does."""

    def __init__(self) -> None:
        self._known: dict[int, str | None] = {}

    def of(self, pid: int) -> str | None:
        """The user of a process, by name or else by number; None: there is no such process."""
        uid = owner_of(pid)
        if uid is None:
            return None
        if uid not in self._known:
            self._known[uid] = None
            threading.Thread(target=self._ask, args=(uid,), name="sense-user", daemon=True).start()
        return self._known[uid] or str(uid)

    def _ask(self, uid: int) -> None:
        try:
            self._known[uid] = pwd.getpwuid(uid).pw_name
        except KeyError:
            self._known[uid] = str(uid)


def is_another_users(pid: int) -> bool:
    """Whether it belongs to another user, whose command line is not for this one to read. To root all are its own."""
    return owner_of(pid) not in {None, os.geteuid()} and os.geteuid() != 0


def command_of(pid: int) -> str | None:
    """The command line, or the name in brackets if it has none; None: there is no such process."""
    words, name = b" ".join(words_of(pid))[: 4 * COMMAND_CHARACTERS], comm_of(pid)
    return words.decode("utf-8", "replace").strip()[:COMMAND_CHARACTERS] or (f"[{name}]" if name else None)


LONGEST_S = 60.0
"""No rate is shown over a longer time, in which nobody looked: it would not be the present one."""


class Rates:
    """What counters of processes grow by in a second, from look to look."""

    def __init__(self) -> None:
        self._before: dict[tuple[int, int], tuple[tuple[int, ...], float]] = {}
        self._now: dict[tuple[int, int], tuple[tuple[int, ...], float]] = {}

    def begin(self) -> None:
        """Begin a look: processes that the last one did not have are forgotten."""
        self._before, self._now = self._now, {}

    def of(self, stat: Process, counters: tuple[int, ...], t: float) -> tuple[float, ...] | None:
        """Growth since the last look; None at the first one. ``t`` in seconds."""
        key = (stat.pid, stat.start_ticks)
        self._now[key] = (counters, t)
        before, then = self._before.get(key, ((), t))
        if not 0 < t - then <= LONGEST_S:
            return None
        return tuple(max(0, new - old) / (t - then) for old, new in zip(before, counters, strict=True))

    def cpu_pct(self, stat: Process, t: float) -> float | None:
        """CPU time since the last look, in per cent of a core."""
        found = self.of(stat, (stat.own_ticks,), t)
        return None if found is None else 100.0 * found[0] / TICKS_PER_S
