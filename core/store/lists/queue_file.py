"""The queue on disk, ``TRAINWATCH_HOME/queue/``: one file, replaced under a lock, and the environment of each entry."""

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import msgspec

from ...model.launch.queue import QUEUE_VERSION, Queue
from ..atomic import write_atomically
from ..home import make_private


class QueueUnreadable(Exception):  # noqa: N818  named after the condition
    """The file is damaged or of a newer trainwatch. The message is a sentence for the user; nothing is written."""


class QueueFile:
    """The queue of one state folder."""

    def __init__(self, home: Path) -> None:
        self.folder = Path(os.path.normpath(home)) / "queue"
        self.path = self.folder / "queue.json"

    @property
    def worker_lock(self) -> Path:
        """``worker.lock``: held by the process that starts queued runs."""
        return self.folder / "worker.lock"

    @property
    def worker_log(self) -> Path:
        """``worker.log``: output of that process."""
        return self.folder / "worker.log"

    def read(self) -> Queue:
        """The queue; empty if there is none. Raises QueueUnreadable, OSError."""
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return Queue()
        try:
            found = msgspec.json.decode(data, type=Queue)
        except msgspec.MsgspecError as error:
            raise QueueUnreadable(f"{self.path}: damaged ({error}); move it away to begin a new queue") from None
        if found.version > QUEUE_VERSION:
            raise QueueUnreadable(f"{self.path}: written by a newer trainwatch; update trainwatch to use this queue")
        return found

    def update(self, change: Callable[[Queue], Queue]) -> Queue:
        """Change the queue: no other process changes it in between. Returns the new one. Raises as ``read``."""
        make_private(self.folder)
        with self._locked():
            before = self.read()
            after = change(before)
            if after != before:
                write_atomically(self.path, msgspec.json.format(msgspec.json.encode(after)))
            return after

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        descriptor = os.open(self.folder / "queue.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def keep_environment(self, key: str, environ: Mapping[str, str]) -> None:
        """Keep the environment that an entry was added with. Only its owner may read it. Raises OSError."""
        make_private(self.folder)
        write_atomically(self._environment(key), msgspec.json.encode(dict(environ), enc_hook=str))

    def environment(self, key: str) -> dict[str, str] | None:
        """The environment of an entry; None if it is lost."""
        try:
            return msgspec.json.decode(self._environment(key).read_bytes(), type=dict[str, str])
        except (OSError, msgspec.MsgspecError):
            return None

    def forget_environment(self, key: str) -> None:
        with contextlib.suppress(OSError):
            self._environment(key).unlink()

    def _environment(self, key: str) -> Path:
        return self.folder / f"environment-{key}.json"
