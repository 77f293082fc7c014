"""Keeps trainwatch's own files in order while a run is supervised: full disk, deleted folder, journal or lock.

What is wrong is kept in memory and notified at once, so that neither needs a file. Nothing here ends the supervisor or
the trainer.
"""

import errno
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from ...act.launch import spool
from ...act.launch.attempt_records import read_order, read_start
from ...act.launch.log_room import reserve_by_name
from ...act.notify import Outbox
from ...bound_process import missing_files
from ...model.attempt import LaunchOrder, StartRecord
from ...model.ports.supervision import AttemptTarget
from ...model.run import RunSpec
from ...store.ballast import Ballast, free_bytes
from ...store.home import make_private
from ...store.journal.safe_journal import SafeJournal
from ...store.lock import LockLost, SupervisorLock
from ...store.run_directory import RunDirectory
from .own_troubles import OwnTroubles

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
        self._outbox = outbox
        self._run = run
        self._spec = spec
        self._lock = lock
        self._troubles = troubles
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
        self._remember()
        self._look_at_folder()
        self._look_at_program(now)
        self._look_at_lock()
        self.journal.look()
        self._look_at_disk()

    def close(self) -> None:
        """Give up the ballast: it is of use only while something is written."""
        self._ballast.free()

    def tell(
        self,
        kind: str,
        text: str | None,
        *,
        level_is_warning: bool = False,
        over: str = "trainwatch can write its files again",
    ) -> None:
        """Set or clear a trouble, and notify people of it."""
        if text is None:
            if self._troubles.clear(kind) and kind in self._noticed:
                self._notify(kind, f"over: {kind.replace('_', ' ')}", over)
            return
        if self._troubles.set(kind, text, "warning" if level_is_warning else "danger"):
            self._notify(kind, f"trainwatch: {kind.replace('_', ' ')}", text)

    def notice(self, title: str, body: str) -> None:
        """Notify people of something that trainwatch did about itself."""
        self._notify(title, f"trainwatch: {title}", body)

    def _notify(self, kind: str, title: str, body: str) -> None:
        now = time.monotonic()
        if now - self._noticed.get(kind, -NOTICE_S) < NOTICE_S:
            return
        self._noticed[kind] = now
        arguments = ("warning", f"{self._spec.name}: {title}", body)
        threading.Thread(target=self._outbox.send, args=arguments, name="own-notice", daemon=True).start()

    def _remember(self) -> None:
        """Keep the records of the live attempt: without them no later supervisor finds its trainer."""
        target = self.live()
        if target is not None and (self._records is None or self._records[0] != target):
            folder = Path(target.directory)
            self._records = (target, read_order(folder), read_start(folder))

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
        if self._run.path.is_dir():
            lost = self._records is not None and not Path(self._records[0].directory).is_dir()
            if lost:
                self._write_records()
            return
        try:
            make_private(self._run.attempts)
            make_private(self._run.incidents)
            self._run.save_spec(self._spec)
            self._write_records()
        except OSError as error:
            self.tell(
                "state_folder",
                f"{self._run.path} was deleted and cannot be made again ({error.strerror or error}); the trainer and "
                "the supervisor go on; what they do is told but not kept",
            )
            return
        self.tell(
            "state_folder",
            f"{self._run.path} was deleted; the supervisor made it again, with the journal; the trainer goes on, its "
            "older logs and the charts are lost",
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
                self._notify("lock", "trainwatch: lock", f"{self._run.lock} was deleted; the supervisor took it again")
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
