"""Identity of a process: (boot id, pid, start ticks). Pids are reused; psutil's ``create_time`` shifts."""

from functools import cache
from pathlib import Path

from ...model.run import ProcessIdentity
from .proc_stat import read_stat

DEAD_STATES: frozenset[str | None] = frozenset("ZXx")
"""Zombie (ended, not yet waited for) and dead. A zombie has a pid and answers signal 0, but nothing runs."""


@cache
def boot_id() -> str:
    """The kernel's id of this boot; "" if it is not readable."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return ""


def is_alive(identity: ProcessIdentity) -> bool:
    """Whether exactly this process runs. False for a zombie, another process with its pid, and another boot."""
    return _state(identity) not in {None, *DEAD_STATES}


def is_zombie(identity: ProcessIdentity) -> bool:
    """Whether the process has ended and was not waited for yet."""
    return _state(identity) in DEAD_STATES


def _state(identity: ProcessIdentity) -> str | None:
    stat = read_stat(identity.pid)
    same = stat is not None and identity.boot_id == boot_id() and stat.start_ticks == identity.start_ticks
    return stat.state if stat is not None and same else None
