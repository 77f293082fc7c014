"""What a person thinks of checkpoints: ``TRAINWATCH_HOME/ratings.json``, replaced under a lock."""

import contextlib
import fcntl
import os
from pathlib import Path

import msgspec

from ...model.checkpoints.rating import Rating
from ..atomic import write_atomically
from ..home import make_private

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
