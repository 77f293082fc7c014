"""Keeps trainwatch's own files in order while a run is supervised: full disk, deleted folder, journal or lock.

What is wrong is kept in memory and notified at once, so that neither needs a file. Nothing here ends the supervisor or
the trainer.
"""

import errno
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, Self
from zlib import crc32

import msgspec

from ... import spool
from ...act.launch.spawn import reserve_by_name
from ...act.notify import Outbox
from ...bound_process import NoAnswerError, answer, missing_files
from ...model.ports import AttemptTarget
from ...model.run import LaunchOrder, RunSpec, StartRecord
from ...model.story import Trouble
from ...processes import read_process
from ...spool import read_order, read_start
from ...store.home import make_private
from ...store.latest import ProgressPoint
from ...store.lock import BEAT_S, LifeSignWriter, LockLost, SupervisorLock
from ...store.run_directory import RunDirectory
from ...store.supervision import Ballast, SafeJournal, ServiceManager, free_bytes
from .run_output import ObservationWorks

# Shows that this supervisor lives: its sign of life on disk, and its answer to the question how it is.
#
# It also lets the StateKeeper look at trainwatch's own files at each turn.

START_S = 120.0
"""Longest time in which the sign of life is written for a loop that has not begun: it reads the journal, the plan and
the folder first."""


class Vitality:
    """Use as a context manager while the run's lock is held. ``turn`` is called at each turn of the loop."""

    def __init__(self, run: RunDirectory, lock: SupervisorLock, *, turning: Callable[[], None] = lambda: None) -> None:
        self._turning = turning
        own = read_process(os.getpid())
        self.troubles = OwnTroubles()
        spec = run.load_spec()
        self.outbox = Outbox(spec, str(run.path))
        self.keeper = StateKeeper(run, spec, lock, self.troubles, self.outbox)
        self._sign = LifeSignWriter(run.life_sign, start_ticks=own.start_ticks if own is not None else 0)
        self.newest: Callable[[], ProgressPoint | None] = lambda: None
        self._manager = ServiceManager()
        self._begun = threading.Event()
        self.observation = ObservationWorks(spec.settings.watch.interval_s)

    def turn(self) -> None:
        if not self._begun.is_set():
            self._begun.set()
            self._manager.ready()
        self._sign.beat()
        self._manager.alive()
        self.keeper.turn()
        self._turning()

    def report(self) -> dict[str, Any]:
        """``age_s``: seconds since the loop's last turn; ``troubles``: what is wrong with trainwatch itself.

        ``progress``: the newest, which status shows also if nothing can be written.
        """
        return {
            "age_s": max(0.0, time.monotonic() - self._sign.turned),
            "troubles": msgspec.to_builtins(self.troubles.now()),
            "progress": msgspec.to_builtins(self.newest()),
        }

    def why_blind(self, *, live: bool) -> str | None:
        """Why the run is not really observed now; None if it is. ``live``: a trainer runs."""
        blocked = any(trouble.kind == "journal" for trouble in self.troubles.now())
        return self.observation.why_not(turned=self._sign.turned, live=live, blocked=blocked)

    def __enter__(self) -> Self:
        self._sign.beat()
        threading.Thread(target=self._until_begun, name="starting", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._begun.set()
        self._manager.stopping()
        self.keeper.close()

    def _until_begun(self) -> None:
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline and not self._begun.wait(BEAT_S):
            self._sign.beat()
            self._manager.alive()


# trainwatch's own files replaced while a supervisor runs, as an upgrade does; and going on with the new ones.
#
# A supervisor has loaded most of its code, not all, and starts its runners from the files. So before a launch, and
# when something failed that may be due to it, it looks whether its files are still those that it began with. If they
# were replaced, and the new version can read this run, this process ends its watch in order and executes the new
# version under the same pid. What was decided and has no outcome in the journal is done by that one, as after any
# death.

PACKAGE = Path(__file__).absolute().parents[3]
"""In a checkout core/ is a link from here: resolved, it would lead to the tests and the environment, too."""
NAME = "trainwatch"
TRY = "--try"
"""Option of `supervise`: load what a supervisor of the run needs, and end."""
STARTS_S = 60.0
"""Longest time that the new version may take for that, on a busy machine."""
PATIENCE_S = 60.0
"""Longest time that half an upgrade is waited for."""
POLL_S = 2.0


def fingerprint(folder: Path) -> int:
    """A number that changes if a source file below ``folder`` is replaced, added or removed."""
    found = 0
    for place, folders, files in os.walk(folder, followlinks=True):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted(files):
            if name.endswith((".py", ".toml")):
                try:
                    seen = os.stat(f"{place}/{name}")  # noqa: PTH116  hundreds of files
                except OSError:
                    continue
                found = crc32(f"{place}/{name} {seen.st_ino} {seen.st_size} {seen.st_mtime_ns}".encode(), found)
    return found


class OwnFiles:
    """The files of this process's version. ``as_json``: how the next one prints its events."""

    def __init__(self, run: RunDirectory, *, as_json: bool = False) -> None:
        self._run, self._as_json = run, as_json
        self._began_with = fingerprint(PACKAGE)
        self._lock = threading.Lock()
        self._refused: int | None = None
        self.gives_way = False
        """Whether this process is to go on as the new version, once its watch has ended."""

    def give_way(self) -> bool:
        """Whether the new version is to go on. Waits for half an upgrade, up to PATIENCE_S."""
        with self._lock:
            end = time.monotonic() + PATIENCE_S
            while not self.gives_way and (now := fingerprint(PACKAGE)) not in {self._began_with, self._refused}:
                self.gives_way = self._can_start() and fingerprint(PACKAGE) == now
                if not self.gives_way:
                    if time.monotonic() > end:
                        self._refused = now
                    else:
                        time.sleep(POLL_S)
            return self.gives_way

    def _can_start(self) -> bool:
        """Whether the version of the files can be started, and reads this run."""
        command = [sys.executable, "-P", "-m", NAME, "supervise", self._run.id, TRY]
        env = {**os.environ, "TRAINWATCH_HOME": str(self._run.path.parents[1])}
        try:
            answer(command, STARTS_S, env=env, cwd="/")
        except NoAnswerError:
            return False
        return True

    def execute(self) -> None:
        """Become the supervisor of the new version: does not return."""
        sys.stdout.flush()
        sys.stderr.flush()
        more = ["--json"] if self._as_json else []
        argv = [sys.executable, "-P", "-m", NAME, "supervise", self._run.id, *more]
        os.execve(argv[0], argv, {**os.environ, "TRAINWATCH_HOME": str(self._run.path.parents[1])})


# What is wrong with trainwatch itself now, kept in memory: it must be told also if nothing can be written.


class OwnTroubles:
    """Troubles by kind. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[str, Trouble] = {}

    def set(self, kind: str, text: str, level: Literal["danger", "warning", "info"] = "danger") -> bool:
        """Say that this is wrong. Returns whether it is new; one that lasts keeps its ``since``."""
        with self._lock:
            before = self._known.get(kind)
            since = before.since if before is not None else time.time()
            self._known[kind] = Trouble(kind=kind, level=level, text=text, since=since)
            return before is None

    def clear(self, kind: str) -> bool:
        """Say that it is over. Returns whether it was there."""
        with self._lock:
            return self._known.pop(kind, None) is not None

    def now(self) -> tuple[Trouble, ...]:
        with self._lock:
            return tuple(self._known.values())


LOOK_S = 1.0
FULL_BYTES = 1 << 20
"""Below this the disk counts as full: ballast is freed, and charts and traces are not written any more."""
FILL_BYTES = 256 << 20
"""Ballast that was freed is made again only with this much free space,"""
FILL_SHARE = 4
"""or with this part of a small disk."""
SMALL = 64
"""The same for a full disk: this part of a small one."""
LOG_ROOM_BYTES = 8 << 20
"""A launch waits while the run's folder has less room than this: a print to a full disk ends most trainers."""
UPGRADE_S = 5.0
"""An upgrade removes the old files first: pip writes the new ones within a second, pipx within half a minute."""
NOTICE_S = 60.0
"""Least time between two notices of one kind."""


class StateKeeper:
    """``turn`` is called by the supervisor's loop, ``room`` by what can do without its files for a while."""

    def __init__(
        self, run: RunDirectory, spec: RunSpec, lock: SupervisorLock, troubles: OwnTroubles, outbox: Outbox
    ) -> None:
        self._run, self._spec, self._lock, self._troubles, self._outbox = run, spec, lock, troubles, outbox
        self._ballast = Ballast(run.path / "ballast")
        self.journal = SafeJournal(run, free=self._free, told=lambda text: self.tell("journal", text))
        self.live: Callable[[], AttemptTarget | None] = lambda: None
        self.end: Callable[[str], None] = lambda _why: None
        """Ends the supervisor: another one has the run."""
        self._records: tuple[AttemptTarget, LaunchOrder | None, StartRecord | None] | None = None
        self._next = 0.0
        self._noticed: dict[str, float] = {}
        self._full = False
        self._gone_since: float | None = None
        self._ballast.fill()

    def room(self) -> bool:
        """Whether charts and traces may be written: the last free space is for the log and the journal."""
        return not self._full

    def refusal(self) -> str | None:
        """Why no attempt may be started now: there is no room for its log. None: there is."""
        path, why = self._run.path, 0
        if not os.access(path, os.W_OK):
            why = errno.EROFS
        elif free_bytes(path) < LOG_ROOM_BYTES:
            why = errno.ENOSPC
        return f"{path}: {os.strerror(why)}: a log needs 8 MB" if why else None

    def turn(self) -> None:
        """Look at everything, at most once every LOOK_S."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + LOOK_S
        target = self.live()
        if target is not None and (self._records is None or self._records[0] != target):
            # without these records no later supervisor finds the trainer of the live attempt
            folder = Path(target.directory)
            self._records = (target, read_order(folder), read_start(folder))
        self._look_at_folder()
        self._look_at_program(now)
        self._look_at_lock()
        self.journal.look()
        self._look_at_disk()

    def close(self) -> None:
        """Give up the ballast: it is of use only while something is written."""
        self._ballast.free()

    def tell(self, kind: str, text: str | None, *, over: str = "trainwatch can write its files again") -> None:
        """Set or clear a trouble, and notify people of it."""
        if text is None:
            if self._troubles.clear(kind) and kind in self._noticed:
                self.notice(kind, f"over: {kind.replace('_', ' ')}", over)
            return
        if self._troubles.set(kind, text):
            self.notice(kind, f"trainwatch: {kind.replace('_', ' ')}", text)

    def notice(self, kind: str, title: str, body: str) -> None:
        """Notify people of something that trainwatch did about itself."""
        now = time.monotonic()
        if now - self._noticed.get(kind, -NOTICE_S) < NOTICE_S:
            return
        self._noticed[kind] = now
        arguments = ("warning", f"{self._spec.name}: {title}", body)
        threading.Thread(target=self._outbox.send, args=arguments, name="own-notice", daemon=True).start()

    def _look_at_program(self, now: float) -> None:
        """Without its program this process cannot verify a checkpoint or start a runner. An upgrade takes seconds."""
        gone = missing_files()
        if not gone:
            self._gone_since = None
            self.tell("program_gone", None, over="trainwatch's program is there again: the run can be restarted")
            return
        self._gone_since = now if self._gone_since is None else self._gone_since
        if now - self._gone_since >= UPGRADE_S:
            self.tell(
                "program_gone",
                f"trainwatch was uninstalled or moved while this run goes on ({gone} is gone): the training goes on, "
                "and a restart waits until trainwatch is installed there again",
            )

    def _look_at_folder(self) -> None:
        attempt = () if self._records is None else (Path(self._records[0].directory),)
        try:
            gone = next((folder for folder in (self._run.path, *attempt) if not folder.is_dir()), None)
        except OSError:
            return  # an expired ticket, a server that does not answer: whether they are there is unknown
        if gone is None:
            return
        try:
            if gone == self._run.path:
                make_private(self._run.attempts)
                make_private(self._run.incidents)
                self._run.save_spec(self._spec)
            self._write_records()
        except OSError as error:
            self.tell(
                "state_folder",
                f"{gone} was deleted and cannot be made again ({error.strerror or error}); the trainer and "
                "the supervisor go on; what they do is told but not kept",
            )
            return
        self.tell(
            "state_folder",
            f"{gone} was deleted; the supervisor made it again, with its own records; the trainer goes on; what else "
            "was there, logs and charts, is lost",
        )
        self._ballast.fill()

    def _write_records(self) -> None:
        if self._records is None:
            return
        target, order, start = self._records
        folder = make_private(Path(target.directory))
        for name, record in ((spool.ORDER, order), (spool.START, start)):
            if record is not None:
                spool.write(str(folder), name, msgspec.to_builtins(record))
        if target.log and not os.path.lexists(target.log) and Path(target.log).parent == folder:
            # The trainer still writes the deleted file; this name leads to it as long as the trainer lives.
            Path(target.log).symlink_to(f"/proc/{target.trainer.pid}/fd/1")

    def _look_at_lock(self) -> None:
        try:
            if self._lock.keep():
                text = f"{self._run.lock} was deleted; the supervisor took it again"
                self.notice("lock", "trainwatch: lock", text)
        except LockLost as lost:
            self.end(str(lost))
        except OSError:
            pass  # the folder cannot be written: told already

    def _free(self) -> bool:
        """The disk is full: give up the ballast. Returns whether there was any."""
        freed = self._ballast.free()
        self._full = True
        gained = "; the ballast was freed, so that the log of the trainer goes on for a while" if freed else ""
        self.tell(
            "state_disk",
            f"the disk of {self._run.path} is full or cannot be written{gained}; charts and traces pause; free some "
            "space there, or a print of the trainer fails and ends it",
        )
        return freed

    def _look_at_disk(self) -> None:
        try:
            disk = os.statvfs(self._run.path)
        except OSError:
            return
        free = free_bytes(self._run.path)
        if free < min(FULL_BYTES, disk.f_blocks * disk.f_frsize // SMALL):
            if not self._full or self._ballast.held:
                self._free()
            return
        if self._full and free < min(FILL_BYTES, disk.f_blocks * disk.f_frsize // FILL_SHARE):
            return
        self._full = False
        self.tell("state_disk", None)
        self._ballast.fill()
        target = self.live()
        if target is not None and target.log is not None:
            reserve_by_name(target.log)
