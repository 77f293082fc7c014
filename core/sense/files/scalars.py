"""Scalars that a trainer writes for TensorBoard or into files of lines."""

import contextlib
import math
import os
import struct
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Unpack

import msgspec

from ...atomic_files import opened
from ...file_walk import walk
from ...model.observation import MOST_METRICS, MetricValues
from ...model.ports import AttemptTarget
from ...processes import status_of
from ..sampler import Common, Sampler

# Records of a TensorBoard event file (TFRecord): length, masked CRC32C of it, data, masked CRC32C of that.
#
# A file is read while its trainer writes it: a record that is not whole yet is read again later, and never counts as
# damage (TensorBoard gives one error for both: github.com/tensorflow/tensorboard/pull/3194). Large records hold images
# and histograms; they are passed over unread.

HEAD = struct.Struct("<QI")
CRC = struct.Struct("<I")
SCALAR_BYTES = 16 * 1024
"""A record with scalars has about a hundred bytes; a longer one is passed over. Its CRC would cost 1 ms each 10 kB."""
LONGEST_BYTES = 1 << 32
"""A longer record is no record: the length is damaged."""
_MASK = 0xFFFFFFFF
_POLYNOMIAL = 0x82F63B78


def _table() -> tuple[int, ...]:
    rows = []
    for row in range(256):
        for _ in range(8):
            row = row >> 1 ^ (_POLYNOMIAL if row & 1 else 0)  # noqa: PLW2901  a register
        rows.append(row)
    return tuple(rows)


_ROWS = _table()


def masked_crc(data: bytes) -> int:
    """The checksum of ``data`` as TFRecord stores it: CRC32C (Castagnoli), rotated and shifted."""
    crc = _MASK
    for byte in data:
        crc = crc >> 8 ^ _ROWS[(crc ^ byte) & 0xFF]
    crc ^= _MASK
    return (crc >> 15 | crc << 17) + 0xA282EAD8 & _MASK


class Damaged(Exception):  # noqa: N818  named after the condition
    """What follows cannot be divided into records. The message says where."""


def read_records(path: Path, offset: int = 0, limit_bytes: int = 4 << 20) -> tuple[list[bytes], int]:
    """About ``limit_bytes`` of whole records from ``offset`` on, and where the next one begins.

    A record with a wrong checksum is left out. Raises OSError, Damaged.
    """
    found: list[bytes] = []
    with opened(path, os.O_RDONLY | os.O_NONBLOCK) as descriptor:
        size = os.fstat(descriptor).st_size
        end = offset + limit_bytes
        while offset < end:
            head = os.pread(descriptor, HEAD.size, offset)
            if len(head) < HEAD.size or not any(head):  # zeros: room that a file system made in advance
                break
            length, crc = HEAD.unpack(head)
            if masked_crc(head[:8]) != crc or length > LONGEST_BYTES:
                if found:
                    break  # the next call begins here
                raise Damaged(f"{path}: no record at byte {offset}")
            after = offset + HEAD.size + length + CRC.size
            if after > size:
                break
            if length <= SCALAR_BYTES:
                body = os.pread(descriptor, length + CRC.size, offset + HEAD.size)
                if len(body) < length + CRC.size:
                    break
                data = body[:length]
                if masked_crc(data) == CRC.unpack(body[length:])[0]:
                    found.append(data)
                elif after == size:
                    break  # the last one: its end is not written yet
            offset = after
    return found, offset


# Scalars in records of a TensorBoard event file, by the fields of its protocol buffers; no library is needed.
#
# Source: tensorboard's ``event.proto``, ``summary.proto`` and ``tensor.proto``. PyTorch, TensorFlow 1, Lightning and
# Hugging Face write ``simple_value``; TensorFlow 2 and Keras write a tensor of one element.

TAG_CHARACTERS = 200


class Scalar(NamedTuple):
    """One value. ``wall``: when it was logged, epoch seconds. Finite."""

    tag: str
    step: int
    wall: float
    value: float


_VARINT, _DOUBLE, _BYTES, _FLOAT = 0, 1, 2, 5
_WIDTHS = {_DOUBLE: 8, _FLOAT: 4}
Message = dict[tuple[int, int], list[Any]]
"""Number and wire type of a field → its values: a number (varint) or the raw bytes of each."""


def scalars(record: bytes) -> Iterator[Scalar]:
    """All finite scalars of one record; none if it is no event or holds other things."""
    with contextlib.suppress(IndexError, ValueError, struct.error, OverflowError):
        event = _message(record)
        (wall,) = struct.unpack("<d", event.get((1, _DOUBLE), [bytes(8)])[-1])
        step = event.get((2, _VARINT), [0])[-1]
        for summary in event.get((5, _BYTES), ()):
            for value in _message(summary).get((1, _BYTES), ()):
                tag, scalar = _of_value(_message(value))
                if tag and scalar is not None and math.isfinite(scalar):
                    yield Scalar(tag, step - (1 << 64) if step >> 63 else step, wall, scalar)


def _of_value(value: Message) -> tuple[str, float | None]:
    """Tag and scalar of a ``Summary.Value``."""
    tag = value.get((1, _BYTES), [b""])[-1][: 4 * TAG_CHARACTERS].decode("utf-8", "replace")[:TAG_CHARACTERS]
    if (2, _FLOAT) in value:
        return tag, struct.unpack("<f", value[2, _FLOAT][-1])[0]
    return tag, _of_tensor(_message(value[8, _BYTES][-1])) if (8, _BYTES) in value else None


_FORMATS = {1: "<f", 2: "<d", 3: "<i", 9: "<q"}
"""dtype → one element of ``tensor_content``: float, double, int32, int64."""
_LISTS = {5: "<f", 6: "<d"}
"""Field of the values in a list → one element."""
_WHOLE = frozenset({7, 10})
"""Fields of whole numbers (int_val, int64_val), one after the other or packed."""
_SIGNED = frozenset({3, 9})


def _of_tensor(tensor: Message) -> float | None:
    """The value of a tensor of one element; None for every other one."""
    kind, raw = tensor.get((1, _VARINT), [0])[-1], tensor.get((4, _BYTES), [b""])[-1]
    if kind in _FORMATS and len(raw) == struct.calcsize(_FORMATS[kind]):
        return float(struct.unpack(_FORMATS[kind], raw)[0])
    values: list[float] = []
    for (number, wire), contents in tensor.items():
        for content in contents:
            if number in _LISTS and wire != _VARINT:
                values += [one for (one,) in struct.iter_unpack(_LISTS[number], content)]
            elif number in _WHOLE:
                values += [content] if wire == _VARINT else _packed(content)
    if len(values) != 1 or raw:
        return None
    return float(values[0] - (1 << 64) if values[0] >= 1 << 63 and kind in _SIGNED else values[0])


def _packed(content: bytes) -> Iterator[int]:
    at = 0
    while at < len(content):
        value, at = _varint(content, at)
        yield value


def _message(data: bytes) -> Message:
    """The fields of a message. Raises IndexError or ValueError if it is none."""
    found: Message = {}
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        wire, length = key & 7, _WIDTHS.get(key & 7, 0)
        if wire in {_VARINT, _BYTES}:
            length, at = _varint(data, at)
        elif not length:
            raise ValueError(f"wire type {wire}")
        if wire != _VARINT and at + length > len(data):
            raise ValueError("cut off")
        found.setdefault((key >> 3, wire), []).append(length if wire == _VARINT else data[at : at + length])
        at += 0 if wire == _VARINT else length
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number, and where what follows it begins."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError("a number of more than ten bytes")


# The sensor of TensorBoard event files: the newest scalars that the trainer writes, while it writes them.
#
# Files are found as they are written below the working folder and the output folders (``noticed``), among those that
# the run's processes hold open, and by a look below the output folders, for a supervisor that takes over. They are
# read from their beginning.

NAME = "tfevents"
"""Part of the name of every event file."""
USUAL = ("runs", "lightning_logs", "tb_logs", "logs", "tensorboard")
"""Folders beside the script that frameworks write them to."""
SAMPLE_S = 5.0
SEARCH_S = 10.0
"""Period of the looks for new files."""
DEEP = 4
ENTRIES = 2000
"""Entries of the folders that one look examines."""
FILES = 64
LATE_S = 1800.0
"""Writers flush every two minutes. What is older was written before this supervisor: only the newest of it is kept."""
SHARE, LONGEST_S = 1 / 600, 60.0
"""Values are kept every second for the first 10 minutes, every minute after ten hours, as those of the log are."""
BURST = 120
"""Points of time that one read gives at most, the newest."""


class _File(msgspec.Struct):
    """An event file: how far it was read, and the folder to give to ``tensorboard``."""

    path: Path
    folder: str
    offset: int = 0
    inode: int = 0
    damaged: bool = False


class ScalarFiles(Sampler):
    """Puts ``MetricValues`` of the files that were written since the attempt began.

    ``roots``: folders of the run, the working folder last. A tag that two folders have at the same time (Keras: train
    and validation) gets the name of the folder before it, except in the first one.
    """

    name = "TensorBoard files"

    def __init__(
        self, *, roots: Callable[[], Sequence[str]], interval_s: float = SAMPLE_S, **common: Unpack[Common]
    ) -> None:
        super().__init__(interval_s=interval_s, **common)
        self._roots = roots
        self._files: dict[Path, _File] = {}
        self._owner: dict[str, Path] = {}
        self._names: dict[str, None] = {}
        self._left_out: set[str] = set()
        self._begun_wall = self._clock.wall()
        self._searched_t = -SEARCH_S
        self._noticed: deque[str] = deque(maxlen=FILES)
        self._followed: AttemptTarget | None = None

    def noticed(self, path: str) -> None:
        """Take a file that was written. Called by another thread."""
        if NAME in os.path.basename(path) and path not in self._noticed:  # noqa: PTH119  each file
            self._noticed.append(path)

    def follow(self, target: AttemptTarget | None) -> None:
        if target is not None and self.target != target:
            self._begun_wall = self._clock.wall()
        super().follow(target)

    def drain(self, timeout_s: float | None = None) -> bool:
        """Read to the end now, in the caller's thread: the trainer has ended, and its writer closed the files."""
        del timeout_s
        self._searched_t = -SEARCH_S
        self.sample_now()
        return True

    def sample(self) -> None:
        if self.target is not None and self.target != self._followed:
            self._followed = self.target
            self._owner.clear()
            self._searched_t = -SEARCH_S
        now = self._clock.now()
        if now - self._searched_t >= SEARCH_S:
            self._searched_t = now
            self._search()
        found: list[tuple[_File, Scalar]] = []
        for file in self._files.values():
            found += ((file, scalar) for scalar in self._read(file))
        if found:
            self._put(now, found)

    # --- finding ---

    def _search(self) -> None:
        roots = [os.path.realpath(root) for root in self._roots()]
        noticed = [Path(self._noticed.popleft()) for _ in range(len(self._noticed))]
        # in the output folders, and in the usual ones beside the script
        places = (*roots[:-1], *(str(Path(roots[-1], name)) for name in USUAL)) if roots else ()
        below = (Path(each.path) for each in walk(places, depth=DEEP, most=ENTRIES) if NAME in each.name)
        for path in (*noticed, *below):
            if len(self._files) >= FILES or path in self._files:
                continue
            status = status_of(path)
            if status is not None and status.st_mtime >= self._begun_wall - 1.0:
                self._files[path] = _File(path, logdir(path, roots))

    # --- reading ---

    def _read(self, file: _File) -> Iterator[Scalar]:
        if file.damaged:
            return
        try:
            status = file.path.stat()
            if status.st_ino != file.inode or status.st_size < file.offset:  # another file under its name
                file.inode, file.offset = status.st_ino, 0
            while file.offset < status.st_size:
                records, offset = read_records(file.path, file.offset)
                for record in records:
                    yield from scalars(record)
                if offset == file.offset:
                    break
                file.offset = offset
        except Damaged as damage:
            file.damaged = True
            self._problems.report(str(file.path), f"{damage}; its further values are not read, the training continues")
        except OSError:
            return  # removed, or its disk is away: it is read on when it is back

    def _put(self, now: float, found: Iterable[tuple[_File, Scalar]]) -> None:
        wall = self._clock.wall()
        span_s = max(1.0, min(LONGEST_S, now * SHARE))
        places: dict[int, tuple[dict[str, float], int]] = {}
        folder = ""
        for file, scalar in sorted(found, key=lambda each: each[1].wall):
            name = self._name(file, scalar.tag)
            if name is None:
                continue
            folder = file.folder
            at = max(0.0, now - min(LATE_S, max(0.0, wall - scalar.wall)))
            values, step = places.setdefault(int(at / span_s), ({}, scalar.step))
            values[name] = scalar.value
            places[int(at / span_s)] = values, max(step, scalar.step)
        for place, (values, step) in sorted(places.items())[-BURST:]:
            at = min(now, place * span_s)
            self._inbox.put(
                MetricValues(
                    t=now,
                    at_t=at,
                    values=values,
                    step=step,
                    source="tensorboard",
                    folder=folder,
                    left_out=len(self._left_out),
                )
            )

    def _name(self, file: _File, tag: str) -> str | None:
        """The name of the series; None if there are too many."""
        here = file.path.parent
        owner = self._owner.setdefault(tag, here)
        name = tag if owner == here else f"{here.name}/{tag}"
        if name not in self._names:
            if len(self._names) >= MOST_METRICS:
                self._left_out.add(name)
                return None
            self._names[name] = None
        return name


def logdir(path: Path, roots: Sequence[str]) -> str:
    """The folder to give to ``tensorboard``: the run's folder that the file is below, else its own.

    Of the working folder, which is the last of ``roots``, only the part that the file is in.
    """
    here = os.path.realpath(path.parent)
    for number, root in enumerate(roots):
        if here == root:
            return root
        if here.startswith(root + os.sep):
            part = Path(here).relative_to(root).parts[0]
            return root if number + 1 < len(roots) else str(Path(root, part))
    return here
