"""Who a process is: (boot id, pid, start ticks). A pid alone is reused, and ``create_time`` shifts with the clock."""

from functools import cache
from pathlib import Path

from ...model.run import ProcessIdentity
from .proc_stat import read_stat

DEAD_STATES = frozenset("ZXx")
"""Zombie (ended, not yet waited for) and dead. A zombie has a pid and answers signal 0, but nothing runs."""


@cache
def boot_id() -> str:
    """The kernel's id of this boot; "" where it is not shown."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return ""


def is_alive(identity: ProcessIdentity) -> bool:
    """Whether this very process still runs. Zombie, other process with its pid, other boot: no."""
    stat = read_stat(identity.pid)
    return (
        stat is not None
        and identity.boot_id == boot_id()
        and stat.start_ticks == identity.start_ticks
        and stat.state not in DEAD_STATES
    )


def is_zombie(identity: ProcessIdentity) -> bool:
    """Whether it ended and waits to be waited for."""
    stat = read_stat(identity.pid)
    return (
        stat is not None
        and identity.boot_id == boot_id()
        and stat.start_ticks == identity.start_ticks
        and stat.state in DEAD_STATES
    )
