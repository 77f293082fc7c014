"""Whether the mounts that a blocked process uses answer, asked by a child: the question may block, too.

A process in state D waits in the kernel, mostly for a network mount. ``statvfs`` of a dead one blocks for ever, so a
child asks, and nobody waits for the child: one that does not answer in time stays until its mount comes back, and no
second one is started for the same mount.
"""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterable

from ...bound_process import bound
from ..host.disk_space import mount_points
from .proc_stat import ProcStat, kernel_text

AFTER_S = 8.0
"""A process that is blocked for less only waits for a disk."""
LIMIT_S = 5.0
"""A mount that takes longer than this counts as one that does not answer."""
AGAIN_S = 15.0
"""Period of the questions."""
MOST_MOUNTS = 8
MOST_DESCRIPTORS = 256
"""Open files that are looked at for each blocked process, at most."""
QUESTION = "import os, sys; os.statvfs(sys.argv[1])"


class _Question:
    def __init__(self, mount: str, question: str, limit_s: float) -> None:
        self._limit_s = limit_s
        self.asked_t = time.monotonic()
        self.answered = False
        self.child = subprocess.Popen(
            bound([sys.executable, "-I", "-S", "-c", question, mount]),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def poll(self) -> bool | None:
        """True: it answered; False: not in time; None: it is too early to tell."""
        if not self.answered and self.child.poll() is not None:
            self.answered = True  # an error (a stale handle) is an answer, too: nothing blocks
        late = time.monotonic() - self.asked_t > self._limit_s
        return True if self.answered else False if late else None


class MountProbe:
    """Asks while a process is blocked. ``check`` never blocks."""

    def __init__(
        self, proc: str = "/proc", *, after_s: float = AFTER_S, limit_s: float = LIMIT_S, question: str = QUESTION
    ) -> None:
        self._proc = proc
        self._after_s, self._limit_s, self._question = after_s, limit_s, question
        self._blocked_t: dict[tuple[int, int], float] = {}
        self._questions: dict[str, _Question] = {}

    def check(self, tree: Iterable[ProcStat]) -> tuple[str, ...] | None:
        """The mounts that do not answer; () if all do. None if no process is blocked for long, or it is not known."""
        now = time.monotonic()
        blocked = [stat for stat in tree if stat.state == "D"]
        self._blocked_t = {(s.pid, s.start_ticks): self._blocked_t.get((s.pid, s.start_ticks), now) for s in blocked}
        stuck = [s for s in blocked if now - self._blocked_t[s.pid, s.start_ticks] >= self._after_s]
        if not stuck:
            self._questions = {mount: q for mount, q in self._questions.items() if not q.poll()}
            return None
        mounts = self._mounts(stuck)
        for mount in mounts:
            known = self._questions.get(mount)
            if known is None or (known.poll() and now - known.asked_t >= AGAIN_S):
                try:
                    self._questions[mount] = _Question(mount, self._question, self._limit_s)
                except OSError:
                    return None
        answers = {mount: self._questions[mount].poll() for mount in mounts}
        silent = tuple(sorted(mount for mount, answer in answers.items() if answer is False))
        if silent:
            return silent
        return () if answers and all(answers.values()) else None

    def _mounts(self, stuck: list[ProcStat]) -> list[str]:
        points = [each.point for each in mount_points(kernel_text(f"{self._proc}/self/mountinfo"))]
        found: dict[str, None] = {}
        for stat in stuck:
            for path in self._paths(stat.pid):
                inside = [p for p in points if path == p or path.startswith(p.rstrip("/") + "/")]
                if inside and len(found) < MOST_MOUNTS:
                    found[max(inside, key=len)] = None
        return list(found)

    def _paths(self, pid: int) -> list[str]:
        """Working folder and open files of a process, as the kernel names them; no file is touched."""
        links = [f"{self._proc}/{pid}/cwd", f"{self._proc}/{pid}/exe"]
        with contextlib.suppress(OSError):
            links += [f"{self._proc}/{pid}/fd/{n}" for n in os.listdir(f"{self._proc}/{pid}/fd")[:MOST_DESCRIPTORS]]  # noqa: PTH208
        found = []
        for link in links:
            try:
                path = os.readlink(link)  # noqa: PTH115
            except OSError:
                continue
            if path.startswith("/") and not path.startswith(("/dev/", "/proc/", "/memfd:")):
                found.append(path)
        return found
