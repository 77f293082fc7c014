"""Lists on disk: the queue, and the ratings of checkpoints."""

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import msgspec

from ..model.checkpoint import Rating
from ..model.trial import QUEUE_VERSION, Queue
from .atomic import write_atomically
from .home import make_private

# The queue on disk, ``TRAINWATCH_HOME/queue/``: one file, replaced under a lock, and the environment of each entry.


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


# What a person thinks of checkpoints: ``TRAINWATCH_HOME/ratings.json``, replaced under a lock.

VERSION = 1


class RatingsUnreadable(Exception):  # noqa: N818  named after the condition
    """The file is damaged or of a newer trainwatch. The message is a sentence for the user; nothing is written."""


class _Ratings(msgspec.Struct, frozen=True, kw_only=True):
    version: int = VERSION
    ratings: tuple[Rating, ...] = ()


def read_ratings(home: Path) -> tuple[Rating, ...]:
    """All ratings, oldest first. Raises RatingsUnreadable, OSError."""
    path = home / "ratings.json"
    try:
        found = msgspec.json.decode(path.read_bytes(), type=_Ratings)
    except FileNotFoundError:
        return ()
    except msgspec.MsgspecError as error:
        raise RatingsUnreadable(f"{path}: damaged ({error}); move it away to begin anew") from None
    if found.version > VERSION:
        raise RatingsUnreadable(f"{path}: written by a newer trainwatch; update trainwatch to read it")
    return found.ratings


def put_rating(home: Path, rating: Rating) -> None:
    """Add a rating in place of the one before of this checkpoint; 0 stars and no note remove it. Raises as above."""
    make_private(home)
    descriptor = os.open(home / "ratings.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        others = tuple(known for known in read_ratings(home) if known.key != rating.key)
        kept = (*others, rating) if rating.stars or rating.note else others
        write_atomically(home / "ratings.json", msgspec.json.format(msgspec.json.encode(_Ratings(ratings=kept))))
    finally:
        with contextlib.suppress(OSError):
            os.close(descriptor)
