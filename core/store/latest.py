"""The newest samples of a run and what its pages show beyond them: small files that are rewritten in place.

The history itself is written in batches, so that a quiet run writes little to the disk. Who reads charts, details or
times of log lines leaves a mark; while that is young, writers write at once, and sensors read details.
"""

import contextlib
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from zlib import crc32

import msgspec

from ..atomic_files import opened
from ..model.json_line import encode_line
from ..model.progress import Outlook, Progress
from ..processes import status_of

if TYPE_CHECKING:
    from ..model.machine_details import Detail, MachineDetails
    from ..model.observation import GpuSample, HostSample, MetricValues, ProcessSample

LOOKED_S = 10.0
"""A mark of a reader of charts or of times that is older counts no more."""
DETAILS_LOOKED_S = 5.0
MARK = ".looked"
MARK_S = 3.0
"""Period of a reader's mark."""
TORN_READS = 3
T = TypeVar("T")


class ProgressPoint(msgspec.Struct, frozen=True, kw_only=True):
    """Progress at ``t`` run seconds.

    ``step_t``: when the newest step of this attempt was seen, in run seconds; None before the first one.
    """

    t: float
    progress: Progress
    step_t: float | None = None
    outlook: Outlook = Outlook()
    lines_behind: int = 0
    """About how many lines of the log were written and not judged."""


class Latest(msgspec.Struct, frozen=True, kw_only=True):
    """The newest sample of each kind, whole; None if there was none. Each has its own ``t``.

    ``metrics``: the newest value of each name, whenever it was logged, up to the last write of the charts.
    """

    gpu: "GpuSample | None" = None
    host: "HostSample | None" = None
    process: "ProcessSample | None" = None
    progress: ProgressPoint | None = None
    metrics: "MetricValues | None" = None


def latest_of(history: Path) -> Latest:
    """The newest sample of each kind of a history. Unknown kinds and damaged ones are left out."""
    samples = newest_samples(history)
    if not samples:  # a run that ended at once has none
        return Latest()
    from ..model.observation import GpuSample, HostSample, MetricValues, ProcessSample

    types = (GpuSample, HostSample, ProcessSample, ProgressPoint, MetricValues)
    found: dict[str, Any] = {}
    for kind, type_ in zip(Latest.__struct_fields__, types, strict=True):
        with contextlib.suppress(msgspec.MsgspecError, KeyError):
            found[kind] = msgspec.json.decode(samples[kind], type=type_)
    return Latest(**found)


class NewestSamples:
    """Rewrites ``HISTORY.newest`` about once a second, beginning with what an earlier supervisor left there.

    Problems raise nothing.
    """

    def __init__(self, history: Path) -> None:
        self._path = newest_path(history)
        self.samples = newest_samples(history)
        """By kind, as JSON."""

    def put(self, kind: str, sample: bytes) -> None:
        self.samples[kind] = msgspec.Raw(sample)

    def write(self) -> None:
        if self.samples:
            _write_framed(self._path, msgspec.json.encode(self.samples))


def newest_samples(history: Path) -> dict[str, msgspec.Raw]:
    """The newest sample of each kind as JSON; none if the file is missing or damaged."""
    return _read_framed(newest_path(history), dict[str, msgspec.Raw]) or {}


def newest_path(history: Path) -> Path:
    return history.with_name(f"{history.name}.newest")


# --- a file that is rewritten in place: it needs no room on a full disk ---


def rewrite(path: Path, data: bytes) -> None:
    """Replace the beginning of a file by ``data``. Raises OSError."""
    with opened(path, os.O_WRONLY | os.O_CREAT) as descriptor:
        os.pwrite(descriptor, data, 0)


def _write_framed(path: Path, payload: bytes) -> None:
    """With checksum and length: what is behind it is of an earlier write. Raises nothing."""
    with contextlib.suppress(OSError):
        rewrite(path, crc32(payload).to_bytes(4, "big") + len(payload).to_bytes(4, "big") + payload)


def _read_framed(path: Path, kind: type[T]) -> T | None:
    """What was written so, as JSON of that kind; None if there is none, or it is damaged."""
    with contextlib.suppress(OSError, msgspec.MsgspecError):
        for _ in range(TORN_READS):
            data = path.read_bytes()
            payload = data[8 : 8 + int.from_bytes(data[4:8], "big")]
            if crc32(payload) == int.from_bytes(data[:4], "big"):
                return msgspec.json.decode(payload, type=kind)
    return None


# --- marks of readers ---


def is_looked_at(file: Path, within_s: float = LOOKED_S) -> bool:
    """Whether somebody read it lately: a history, the index of a log, or the details."""
    status = status_of(f"{file}{MARK}")
    return status is not None and abs(time.time() - status.st_mtime) < within_s


def leave_mark(file: Path) -> None:
    """Say that somebody reads it. Does nothing if the folder cannot be written."""
    with contextlib.suppress(OSError):
        Path(f"{file}{MARK}").touch(mode=0o600)


# --- what a page shows beyond the samples: a file for each kind, rewritten while the page is open ---


class DetailFiles:
    """``model.ports.DetailDesk`` in a run's folder, where each kind is put by one thread, and the screen's Source."""

    def __init__(self, folder: Path) -> None:
        self._details = folder / "details"

    def wanted(self) -> bool:
        """Whether a page is open, by the age of its mark."""
        return is_looked_at(self._details, DETAILS_LOOKED_S)

    def put(self, detail: "Detail") -> None:
        _write_framed(self._details.with_name(f"details.{type(detail).__name__}"), encode_line(detail))

    def look(self) -> "MachineDetails":
        """Renew the mark, and read what there is; what is missing or damaged is None."""
        from ..model.machine_details import GpuDetails, HostDetails, MachineDetails, TreeDetails

        leave_mark(self._details)

        def newest(kind: type[T]) -> T | None:
            return _read_framed(self._details.with_name(f"details.{kind.__name__}"), kind)

        return MachineDetails(gpus=newest(GpuDetails), host=newest(HostDetails), tree=newest(TreeDetails))
