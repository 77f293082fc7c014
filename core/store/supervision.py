"""What a supervisor has of its own: its clock, its journal, ballast against a full disk, and systemd's notice."""

import contextlib
import os
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterable, MutableMapping
from pathlib import Path

from ..model.decision import Entry, Record
from ..model.fact import JudgeSnapshot
from ..model.observation import Outcome
from ..processes import status_of
from .journal import (
    JournalTooNew,
    JournalWriter,
    JudgeStates,
    fold_journal,
    is_worth_storing,
    nothing_stored,
    record_of,
)
from .run_directory import RunDirectory

# --- run time: seconds since the run was created, on a clock that includes suspends and never goes back ---

# Only Linux has a clock that counts suspends; elsewhere run time stops while the machine sleeps.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def boot_seconds() -> float:
    """Seconds on a clock that nobody sets and that counts suspends, from an unknown beginning."""
    return time.clock_gettime(_CLOCK)


class RunClock:
    """The Clock of model/ports.py. Thread-safe.

    The time of day is read once, when the clock is made; then only the boot clock counts, so a corrected time of day
    (NTP, a user) moves no deadline. ``not_before``: the newest ``t`` in the journal: an adopting supervisor never goes
    back in time, and its time goes on from there if the time of day was set back meanwhile.
    """

    def __init__(self, created_wall: float, *, not_before: float = 0.0) -> None:
        self._offset = max(time.time() - created_wall, not_before, 0.0)
        self._boot = time.clock_gettime(_CLOCK)
        self._newest = max(not_before, 0.0)
        self._lock = threading.Lock()

    def now(self) -> float:
        """Seconds since the run was created, never less than an earlier answer."""
        elapsed = self._offset + time.clock_gettime(_CLOCK) - self._boot
        with self._lock:
            self._newest = max(self._newest, elapsed)
            return self._newest

    def wall(self) -> float:
        """Seconds since the epoch."""
        return time.time()


# --- the journal, which goes on if its file cannot be written, was deleted or was replaced ---

Told = Callable[[str | None], None]
"""Called with a sentence about what is wrong, and with None when it is over."""


class SafeJournal(JournalWriter):
    """Implements ``model.ports.JournalWriter``. One writer at a time: the holder of the run's lock.

    If the disk is full, ``free`` (which gives up ballast) is called; if that does not help, OSError is raised, and who
    writes keeps the records. The state of a snapshot that is the last record of a batch goes to a file of its own.
    """

    def __init__(
        self, run: RunDirectory, *, free: Callable[[], bool] = lambda: False, told: Told = lambda _: None
    ) -> None:
        self._free, self._told = free, told
        self._troubled = False
        stored = nothing_stored()
        with contextlib.suppress(OSError, JournalTooNew):
            stored = fold_journal(run.journal)
        self._states = JudgeStates(run.path, stored.snapshot)
        self._stored_bytes = stored.offset
        with contextlib.suppress(OSError):  # the first write tries again
            super().__init__(run.journal)

    def append_all(self, t: float, wall: float, entries: Iterable[Entry | Outcome]) -> tuple[Record, ...]:
        """Append records and fsync. Returns the records. Raises OSError; ``seq`` then tells how many were written."""
        with contextlib.suppress(OSError):
            self.open()  # a file that could not be read has its number now
        bodies, before = tuple(entries), self.seq
        if bodies and isinstance(bodies[-1], JudgeSnapshot):
            bodies = (*bodies[:-1], self._states.put(bodies[-1], before + len(bodies)))
        for last in (False, True):
            try:
                self.open()
                super().append_all(t, wall, bodies[self.seq - before :])
                break
            except OSError as error:
                if last or not self._free():
                    self._tell(error)
                    raise
        self._tell(None)
        self._states.written()
        if bodies and isinstance(bodies[-1], JudgeSnapshot):  # readers need not fold what has grown by much
            with contextlib.suppress(OSError, JournalTooNew):
                if is_worth_storing(self.path, self._stored_bytes, self.path.stat().st_size):
                    self._stored_bytes = fold_journal(self.path).offset
        return tuple(record_of(before + i, t, wall, body) for i, body in enumerate(bodies, 1))

    def _tell(self, error: OSError | None) -> None:
        if error is not None:
            self._told(
                f"{self.path} cannot be written ({error.strerror or error}); events are kept in memory, and "
                "nothing is started or ended until it can be: free some space there, or make it writable"
            )
        elif self._troubled:
            self._told(None)
        self._troubled = error is not None

    def look(self) -> None:
        """Write the file again if it was deleted. What it held is still readable through the open descriptor."""
        with contextlib.suppress(OSError):
            if self.write_again():
                self._told(f"{self.path} was deleted or replaced; the supervisor wrote it again with all that it held")
                self._told(None)


# --- ballast: space and inodes in the state folder that are given up when its disk is full ---
#
# The trainer writes its log itself, and a print that fails ends it. Freed ballast lets the next print, and the journal,
# succeed until somebody makes room. ``act/launch/spawn.py`` does the same inside the log.

BYTES = 16 << 20
INODES = 16
SHARE = 8
"""At most this part of the free space is taken."""


class Ballast:
    """Files below ``folder``. Nothing raises: without ballast the run is as well off as before."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def held(self) -> bool:
        return status_of(self.folder) is not None

    def fill(self) -> bool:
        """Make it if it is missing and there is room for it several times. Returns whether it is there."""
        if self.held:
            return True
        size = min(BYTES, free_bytes(self.folder.parent) // SHARE)
        if size < os.sysconf("SC_PAGE_SIZE"):
            return False
        try:
            self.folder.mkdir(mode=0o700)
            with (self.folder / "space").open("xb") as file:
                file.truncate(0)
                os.fchmod(file.fileno(), 0o600)
                os.posix_fallocate(file.fileno(), 0, size)
            for number in range(INODES):
                (self.folder / f"inode-{number}").touch(mode=0o600)
        except OSError:
            self.free()
            return False
        return True

    def free(self) -> bool:
        """Give it up. Returns whether there was any."""
        if not self.held:
            return False
        with contextlib.suppress(OSError), (self.folder / "space").open("r+b") as file:
            file.truncate(0)  # also if the folder cannot be changed
        shutil.rmtree(self.folder, ignore_errors=True)
        return True


def free_bytes(folder: Path) -> int:
    """Bytes that this user may still write there; 0 if none, also without free inodes; 0 if it cannot be told."""
    try:
        room = os.statvfs(folder)
    except OSError:
        return 0
    if room.f_flag & os.ST_RDONLY or (room.f_files and room.f_favail == 0):
        return 0
    return room.f_bavail * room.f_frsize


# --- systemd: this supervisor is ready and lives (sd_notify(3)), as datagrams to ``NOTIFY_SOCKET`` ---

LEAST_S = 0.5


class ServiceManager:
    """Does nothing outside a unit of ``Type=notify``. Raises nothing. The variables are removed for all children."""

    def __init__(self, environ: MutableMapping[str, str] = os.environ) -> None:
        address = environ.pop("NOTIFY_SOCKET", "")
        watchdog_us, pid = environ.pop("WATCHDOG_USEC", ""), environ.pop("WATCHDOG_PID", "")
        self._address = f"\0{address[1:]}" if address.startswith("@") else address
        mine = watchdog_us.isdigit() and pid in {"", str(os.getpid())}
        self._period_s = max(LEAST_S, int(watchdog_us) / 4e6) if mine else None
        self._next = 0.0

    def ready(self) -> None:
        self._send(f"READY=1\nMAINPID={os.getpid()}")

    def alive(self) -> None:
        """Called at each turn of the loop; sent four times in the watchdog's period."""
        now = time.monotonic()
        if self._period_s is not None and now >= self._next:
            self._next = now + self._period_s
            self._send("WATCHDOG=1")

    def stopping(self) -> None:
        self._send("STOPPING=1")

    def _send(self, text: str) -> None:
        if not self._address:
            return
        with (
            contextlib.suppress(OSError),
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as end,
        ):
            end.setblocking(False)
            end.sendto(text.encode(), self._address)
