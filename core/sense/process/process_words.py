"""Who a process belongs to, and its command, as people write them."""

import os
import pwd
import threading
from pathlib import Path

from .proc_stat import TICKS_PER_S, ProcStat

COMMAND_CHARACTERS = 400


class UserNames:
    """Names of users. A directory service that does not answer delays nothing: the number is shown until it does."""

    def __init__(self) -> None:
        self._known: dict[int, str | None] = {}

    def of(self, pid: int) -> str | None:
        """The user of a process, by name or else by number; None: there is no such process."""
        try:
            uid = os.stat(f"/proc/{pid}").st_uid  # noqa: PTH116  (1 Hz: no Path objects)
        except OSError:
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
    try:
        return os.geteuid() not in {0, os.stat(f"/proc/{pid}").st_uid}  # noqa: PTH116  (1 Hz: no Path objects)
    except OSError:
        return False


def command_of(pid: int) -> str | None:
    """The command line, or the name in brackets if it has none; None: there is no such process."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes()[: 4 * COMMAND_CHARACTERS]
        if words.strip(b"\0"):
            return words.replace(b"\0", b" ").decode("utf-8", "replace").strip()[:COMMAND_CHARACTERS]
        return f"[{Path(f'/proc/{pid}/comm').read_text('utf-8', errors='replace').strip()}]"
    except OSError:
        return None


def age_of(stat: ProcStat) -> float | None:
    """Seconds since it was started."""
    try:
        up_s = float(Path("/proc/uptime").read_text("ascii").split()[0])
    except (OSError, ValueError, IndexError):
        return None
    return max(0.0, up_s - stat.start_ticks / TICKS_PER_S)


class CpuShares:
    """CPU time of processes between two looks, in per cent of a core."""

    def __init__(self) -> None:
        self._before: dict[tuple[int, int], tuple[int, float]] = {}
        self._now: dict[tuple[int, int], tuple[int, float]] = {}

    def begin(self) -> None:
        """Begin a look: processes that the last one did not have are forgotten."""
        self._before, self._now = self._now, {}

    def of(self, stat: ProcStat, t: float) -> float | None:
        """The share since the last look; None at the first one. ``t`` in seconds."""
        key = (stat.pid, stat.start_ticks)
        self._now[key] = (stat.own_ticks, t)
        before = self._before.get(key)
        if before is None or t <= before[1]:
            return None
        return 100.0 * max(0, stat.own_ticks - before[0]) / TICKS_PER_S / (t - before[1])
