"""A range of a file, read with ``pread``.

Never mapped: truncating a mapped file kills its reader with SIGBUS, and trainers rotate checkpoints at any time.
"""

import errno
import os
import stat
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import ClassVar

import msgspec

from ...model.checkpoint import Verdict

# What can be wrong with a checkpoint: raised by the readers, turned into a verdict by ``inspection.conclude``.


class Damage(Exception):  # noqa: N818 -- a finding about a file, not an error of ours
    """``reason`` is a sentence that names the member and, if known, the byte."""

    verdict: ClassVar[Verdict]
    understood: bool
    """False: another program may see nothing wrong with it."""
    unfinished: bool
    """What is written last is missing: it is as its writer leaves it if it dies in the middle of a save."""

    def __init__(self, reason: str, *, understood: bool = True, unfinished: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.understood = understood and not unfinished and self.verdict != "opaque"
        self.unfinished = unfinished

    def within(self, member: str) -> "Damage":
        """The same finding for a member of a larger checkpoint."""
        return type(self)(f"{member}: {self.reason}", understood=self.understood, unfinished=self.unfinished)


class Torn(Damage):
    """It ends before what its own structure announces, or lacks a member that is written last."""

    verdict = "torn"


class Corrupt(Damage):
    """Its structure contradicts itself, or a checksum is wrong."""

    verdict = "corrupt"


class NoCounts(Corrupt):
    """A state file in order that holds neither a step nor an epoch under the names that are known."""


class NonFinite(Damage):
    """NaN or Inf inside. ``names``: of the tensors; ``nan``: of those with NaN among them."""

    verdict = "nonfinite"

    def __init__(
        self, reason: str, *, understood: bool = True, names: tuple[str, ...] = (), nan: tuple[str, ...] = ()
    ) -> None:
        super().__init__(reason, understood=understood)
        self.names = names
        self.nan = nan

    def within(self, member: str) -> "NonFinite":
        return NonFinite(
            f"{member}: {self.reason}",
            understood=self.understood,
            names=tuple(f"{member}: {name}" for name in self.names),
            nan=tuple(f"{member}: {name}" for name in self.nan),
        )


class Opaque(Damage):
    """Cannot be listed without running code, or may not be read."""

    verdict = "opaque"


class Growing(Damage):
    verdict = "writing"


SEVERITY: tuple[Verdict, ...] = ("complete", "opaque", "nonfinite", "corrupt", "torn", "writing")
"""The finding furthest to the right gives the verdict: a cut file explains the rest, and while a file is being written
nothing else that was found in it counts."""


def worst(findings: list[Damage]) -> Damage | None:
    """The finding that gives the verdict: the first of the worst kind."""
    return max(findings, key=lambda finding: SEVERITY.index(finding.verdict), default=None)


crc32: Callable[..., int] = zlib.crc32
"""CRC-32 of large buffers: by isal if it is installed (0.02 s for a gigabyte), else by zlib (0.2 to 0.26 s)."""
with suppress(ImportError):
    from isal import isal_zlib

    crc32 = isal_zlib.crc32

HEAD_BYTES = 4096
"""What a format is recognised by."""
STEP_BYTES = 4 << 20
"""Least number of bytes whose cached pages are given back at once."""


class ByteRange(msgspec.Struct, eq=False):
    """``size`` bytes of an open file from ``start``. Offsets in all methods are relative to ``start``.

    ``passed``: up to where pages were given back, of a file that is read through once; one list for all its parts.
    """

    fd: int
    start: int
    size: int
    passed: list[int] | None = None

    def part(self, offset: int, size: int) -> "ByteRange":
        """A range inside this one. Raises Torn when it reaches beyond the end."""
        if offset < 0 or size < 0 or offset + size > self.size:
            raise Torn(f"bytes {offset} to {offset + size} are needed, but there are only {self.size}")
        return ByteRange(self.fd, self.start + offset, size, self.passed)

    def read(self, offset: int, size: int) -> bytes:
        """Exactly ``size`` bytes.

        Raises Torn when there are fewer, Corrupt when the disk cannot read them, OSError when that cannot be told.
        """
        self.part(offset, size)
        try:
            data = os.pread(self.fd, size, self.start + offset)
        except OSError as error:
            raise unreadable(error, f"byte {offset}") from error
        if len(data) == size:
            return data
        buffer = bytearray(size)  # a short read: large sizes, or the end moved
        self.fill(memoryview(buffer), offset)
        return bytes(buffer)

    def fill(self, buffer: memoryview, offset: int) -> None:
        """Fill the whole buffer from ``offset``. Raises as ``read``."""
        done, wanted = 0, len(buffer)
        while done < wanted:
            try:
                got = os.preadv(self.fd, [buffer[done:]], self.start + offset + done)
            except OSError as error:
                raise unreadable(error, f"byte {offset + done}") from error
            if got == 0:
                raise Torn(f"ends at byte {offset + done} while it is being read: it was cut just now")
            done += got

    def is_read_to(self, offset: int) -> None:
        """Nothing before ``offset`` is read again, so its pages need not stay in the cache (``once``)."""
        if self.passed is not None and (size := self.start + offset - self.passed[0]) >= STEP_BYTES:
            with suppress(OSError):  # some filesystems do not support it; reading works without it
                os.posix_fadvise(self.fd, self.passed[0], size, os.POSIX_FADV_DONTNEED)
            self.passed[0] += size


@contextmanager
def open_bytes(path: Path, *, once: bool = False) -> Iterator[ByteRange]:
    """Open a regular file for reading.

    A named pipe or device is refused before it is opened, because opening may block or have an effect. Raises
    FileNotFoundError, Opaque (no permission, not a regular file), Corrupt (the disk cannot read it), OSError (the mount
    does not answer). ``once``: it is read through beside a training, whose loader needs the page cache: a verification
    of 4 GB leaves nothing in it.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise unreadable(error, "the start") from error
    try:
        before = os.fstat(fd)
        if not stat.S_ISREG(before.st_mode):
            raise Opaque("is not a regular file")
        yield ByteRange(fd, 0, before.st_size, [0] if once else None)
        if once:
            with suppress(OSError):
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(fd)


def head_of(path: Path, size: int = HEAD_BYTES) -> bytes | None:
    """The first bytes of a file; None if it cannot be read."""
    try:
        with open_bytes(path) as source:
            return source.read(0, min(source.size, size))
    except (OSError, Damage):
        return None


NOT_THE_FILE = frozenset(
    getattr(errno, name)
    for name in (
        "ESTALE", "ETIMEDOUT", "ENOTCONN", "ECONNRESET", "ECONNABORTED", "ECONNREFUSED", "EHOSTDOWN", "EHOSTUNREACH",
        "ENETDOWN", "ENETUNREACH", "EREMOTEIO", "ENODEV", "EINTR", "EAGAIN", "ENOMEM", "EMFILE", "ENFILE",
    )
)  # fmt: skip
"""Errors of a mount or of this process. They say nothing about the file."""


def unreadable(error: OSError, where: str) -> Corrupt | Opaque | OSError:
    """The damage for a read that the system refused; the error itself if it is not the file's."""
    if error.errno in NOT_THE_FILE:
        return error
    if error.errno in {errno.EACCES, errno.EPERM, errno.ENXIO, errno.EISDIR, errno.ELOOP}:
        return Opaque(f"cannot be opened: {error.strerror}")
    return Corrupt(f"cannot be read at {where}: {error.strerror}")


# Long reads that do not starve the trainer's own loader: idle disk priority, a speed limit, progress.

ProgressCallback = Callable[[int, int], None]
"""Called with bytes done and bytes in all; what it raises ends the read and reaches the caller (cancel)."""

BESIDE_TRAINING_BYTES_PER_S = 400e6
"""Limit of a deep verification beside a running training, whose loader needs the disk."""
_REPORT_BYTES = 16 << 20


class Pace:
    """Counts the bytes read, reports every 16 MB, and sleeps when reading is faster than the limit."""

    def __init__(
        self,
        total: int,
        progress: ProgressCallback | None = None,
        rate_limit_bytes_per_s: float | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        if rate_limit_bytes_per_s is not None and rate_limit_bytes_per_s <= 0:
            raise ValueError(f"rate limit must be above 0 bytes per second, not {rate_limit_bytes_per_s}")
        self.total = total
        self.done = 0
        self._progress = progress
        self.rate = rate_limit_bytes_per_s
        self._clock = clock
        self._sleep = sleep
        self._began = clock()
        self._reported = 0

    def advance(self, size: int) -> None:
        self.done += size
        if self.rate is not None:
            ahead_s = self.done / self.rate - (self._clock() - self._began)
            if ahead_s > 0:
                self._sleep(ahead_s)
        if self._progress is not None and self.done - self._reported >= _REPORT_BYTES:
            self._reported = self.done
            self._progress(min(self.done, self.total), self.total)

    def finish(self) -> None:
        """Report the total, even if parts were skipped."""
        if self._progress is not None:
            self._progress(self.total, self.total)


@contextmanager
def idle_io_priority() -> Iterator[bool]:
    """Run the block with the calling thread in the idle I/O class of ioprio_set(2); yields whether that worked.

    The kernel then serves it only when nobody else wants the disk. Schedulers other than BFQ ignore the class.
    """
    import threading  # slow to import

    import psutil

    try:
        thread = psutil.Process(threading.get_native_id())
        before = thread.ionice()
        thread.ionice(psutil.IOPRIO_CLASS_IDLE)
    except (psutil.Error, OSError):
        yield False
        return
    try:
        yield True
    finally:
        thread.ionice(before.ioclass, before.value)
