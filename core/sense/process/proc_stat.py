"""Reads ``/proc`` where that is done each second: files, ``stat`` and ``io`` of a process (proc(5)), its identity.

A process is known by (boot id, pid, start ticks): pids are reused, and psutil's ``create_time`` shifts.
"""

import os
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from ...model.json_line import decode_exact
from ...model.run import ProcessIdentity

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def kernel_text(path: str) -> str:
    """The whole file; empty if it cannot be read."""
    return kernel_bytes(path).decode("utf-8", "replace")


def kernel_bytes(path: str) -> bytes:
    """The whole file; empty if it cannot be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return b"".join(iter(lambda: os.read(descriptor, 1 << 16), b""))
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def status_of(path: str | Path) -> os.stat_result | None:
    """``stat`` of what is there; None if that cannot be told."""
    try:
        return os.stat(path)  # noqa: PTH116  (no Path objects where it is done each second)
    except OSError:
        return None


def link_of(path: str) -> str:
    """Where a link leads; empty if it is none or cannot be read."""
    try:
        return os.readlink(path)  # noqa: PTH115
    except OSError:
        return ""


Record = TypeVar("Record")


def record_in(folder: str, name: str, kind: type[Record]) -> Record | None:
    """A file that another process of ours writes into the folder of an attempt; None if there is none that is whole."""
    try:
        return decode_exact(Path(folder, name).read_bytes(), kind)
    except (OSError, msgspec.MsgspecError):
        return None


def environ_of(pid: int) -> list[bytes]:
    """``NAME=value`` of a process at its start; none if it has ended, or is another user's."""
    return kernel_bytes(f"/proc/{pid}/environ").split(b"\0")


def words_of(pid: int) -> list[bytes]:
    """Its command line; nothing but an empty word if it has none."""
    return kernel_bytes(f"/proc/{pid}/cmdline").split(b"\0")


def comm_of(pid: int) -> str:
    """The program's name; empty if there is no such process."""
    return kernel_text(f"/proc/{pid}/comm").strip()


class ProcStat(NamedTuple):
    """The used fields of ``stat``. Times in clock ticks; ``children_ticks``: of children that were waited for.

    ``exit_status``: the wait status of a zombie (field 52), 0 if it may not be read.
    """

    pid: int
    state: str
    parent: int
    own_ticks: int
    children_ticks: int
    start_ticks: int
    rss_bytes: int
    exit_status: int
    threads: int = 1


def parse_stat(text: str) -> ProcStat | None:
    """Parse one line; None if it is invalid. The name (field 2) may contain blanks and parentheses."""
    opening, closing = text.find(" ("), text.rfind(") ")
    fields = text[closing + 2 :].split()
    if opening < 1 or closing < 0 or len(fields) < 22:
        return None
    return ProcStat(
        pid=int(text[:opening]),
        state=fields[0],
        parent=int(fields[1]),
        own_ticks=int(fields[11]) + int(fields[12]),
        children_ticks=int(fields[13]) + int(fields[14]),
        start_ticks=int(fields[19]),
        rss_bytes=int(fields[21]) * PAGE_BYTES,
        exit_status=int(fields[49]) if len(fields) > 49 else 0,
        threads=int(fields[17]),
    )


def _text_of(path: str) -> str:
    """A file of /proc that fits into one read. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, PAGE_BYTES).decode("utf-8", "replace")
    finally:
        os.close(descriptor)


def read_stat(pid: int) -> ProcStat | None:
    """``stat`` of a process, zombies included; None if there is none."""
    try:
        found = parse_stat(_text_of(f"/proc/{pid}/stat"))
    except OSError:
        return None
    if found is not None and found.state == "Z" and found.threads > 1:
        # Its first thread ended, but others run or hang in the kernel: it is not a zombie yet.
        return found._replace(state=_living_thread_state(pid))
    return found


def read_children(pid: int) -> list[int]:
    """Pids that the first thread of a process started; none if it has ended or the kernel has no such list."""
    try:
        return [int(word) for word in _text_of(f"/proc/{pid}/task/{pid}/children").split()]
    except OSError:
        return []


def _living_thread_state(pid: int) -> str:
    states = set()
    try:
        for tid in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208
            states.add(_text_of(f"/proc/{pid}/task/{tid}/stat").rpartition(")")[2].split()[0])
    except (OSError, IndexError):
        pass
    living = states - {"Z", "X", "x"}
    return "D" if "D" in living else min(living, default="Z")


KTHREADD = 2
"""The parent of all kernel threads. A container does not see them; there the pid is another process."""


def read_all() -> dict[int, ProcStat]:
    """``stat`` of every process by pid, without kernel threads. Takes about 15 microseconds for each."""
    kernel = KTHREADD if comm_of(KTHREADD) == "kthreadd" else None
    found = (read_stat(int(name)) for name in os.listdir("/proc") if name.isdecimal())  # noqa: PTH208  (1 Hz)
    return {stat.pid: stat for stat in found if stat is not None and stat.parent != kernel}


class ProcIo(NamedTuple):
    """Bytes that a process has read and written, cumulative, with those of children that it waited for.

    ``read_bytes``: requested (page cache and pipes included: a loader that reads from the cache is alive).
    ``disk_bytes``: read from the disk, those of mapped files and of paging included, which request none.
    ``write_bytes``: the larger of requested bytes and bytes that reached the disk.
    """

    read_bytes: int
    write_bytes: int
    disk_bytes: int = 0


def parse_io(text: str) -> ProcIo | None:
    words = text.split()
    values = dict(zip(words[::2], words[1::2], strict=False))
    try:
        return ProcIo(
            read_bytes=int(values["rchar:"]),
            write_bytes=max(int(values["wchar:"]), int(values["write_bytes:"])),
            disk_bytes=int(values["read_bytes:"]),
        )
    except (KeyError, ValueError):
        return None


def read_io(pid: int) -> ProcIo | None:
    """Bytes of a process; None if it has ended, belongs to another user, or the kernel does not count."""
    try:
        return parse_io(_text_of(f"/proc/{pid}/io"))
    except OSError:
        return None


DEAD_STATES: frozenset[str | None] = frozenset("ZXx")
"""Zombie (ended, not yet waited for) and dead. A zombie has a pid and answers signal 0, but nothing runs."""


@cache
def boot_id() -> str:
    return kernel_text("/proc/sys/kernel/random/boot_id").strip()


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
