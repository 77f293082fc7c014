"""The newest sample of each kind, in a small file beside the history that is rewritten in place about once a second.

It is in memory (``memory_file``), on a network filesystem on the disk, where readers may be on other machines.

The history itself is written in batches, so that a quiet run writes little to the disk. A reader of charts leaves a
mark, and while that is young each second is committed.
"""

import contextlib
import time
from collections.abc import Iterable
from pathlib import Path
from zlib import crc32

import msgspec

LOOKED_S = 10.0
"""A mark of a reader that is older counts no more."""
MARK_S = 3.0
"""Period of a reader's mark."""
TORN_READS = 3
WHOLE = "whole"
"""In the file beside the samples: the history has no newer one, and none of another kind but the trainer's metrics."""


class NewestSamplesWriter:
    """Rewrites ``PATH.newest``. Problems raise nothing: readers then use what the history has."""

    def __init__(self, history: Path, *, in_memory: bool = True) -> None:
        self._history = history
        self._samples: dict[str, msgspec.Raw] = {}
        from .memory_file import MemoryFile  # readers do without it

        self._file = MemoryFile(newest_path(history), in_memory=in_memory)

    def put(self, kind: str, sample: bytes) -> None:
        """Keep the newest sample of a kind, as JSON."""
        self._samples[kind] = msgspec.Raw(sample)

    def complete(self, known: Iterable[tuple[str, str | bytes]]) -> None:
        """Take samples of kinds that were not put yet: those of earlier writers, which the history has."""
        for kind, sample in known:
            self._samples.setdefault(kind, msgspec.Raw(sample))
        self._samples[WHOLE] = msgspec.Raw(b"true")

    def write(self) -> None:
        """Write all of them in one call."""
        if not self._samples:
            return
        payload = msgspec.json.encode(self._samples)
        with contextlib.suppress(OSError):
            self._file.write(framed(payload))

    def is_looked_at(self) -> bool:
        """Whether somebody reads charts now."""
        return is_looked_at(self._history)

    def close(self) -> None:
        self._file.close()


def framed(payload: bytes) -> bytes:
    """With checksum and length, for a file that is rewritten in place: what is behind it is of an earlier write."""
    return crc32(payload).to_bytes(4, "big") + len(payload).to_bytes(4, "big") + payload


def read_framed(path: Path) -> bytes:
    """What was ``framed``; empty if there is none, or it is damaged."""
    for _ in range(TORN_READS):
        try:
            data = path.read_bytes()
        except OSError:
            return b""
        payload = data[8 : 8 + int.from_bytes(data[4:8], "big")]
        if crc32(payload) == int.from_bytes(data[:4], "big"):
            return payload
    return b""


def newest_samples(history: Path) -> dict[str, bytes]:
    """The newest sample of each kind as JSON; none if the file is missing or damaged."""
    try:
        found = msgspec.json.decode(read_framed(newest_path(history)), type=dict[str, msgspec.Raw])
    except msgspec.MsgspecError:
        return {}
    return {kind: bytes(raw) for kind, raw in found.items()}


def is_looked_at(file: Path, within_s: float = LOOKED_S) -> bool:
    """Whether somebody read it lately: a history, or the index of a log."""
    try:
        return abs(time.time() - mark_path(file).stat().st_mtime) < within_s
    except OSError:
        return False


def leave_mark(file: Path) -> None:
    """Say that somebody reads it. Does nothing if the folder cannot be written."""
    with contextlib.suppress(OSError):
        mark_path(file).touch(mode=0o600)


def newest_path(history: Path) -> Path:
    return history.with_name(f"{history.name}.newest")


def mark_path(file: Path) -> Path:
    return file.with_name(f"{file.name}.looked")
