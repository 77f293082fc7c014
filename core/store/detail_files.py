"""What a page shows beyond the samples: a small file for each kind, rewritten while the page is open, and a mark of it.

The mark says that somebody looks; sensors stop reading details soon after it is no longer renewed.
"""

import contextlib
import os
import time
from pathlib import Path
from typing import TypeVar

import msgspec

from ..model.json_line import encode_line
from ..model.machine_details import Detail, GpuDetails, HostDetails, MachineDetails, TreeDetails
from .newest_samples import framed, read_framed

KINDS: dict[type[Detail], str] = {GpuDetails: "gpus", HostDetails: "host", TreeDetails: "tree"}
Kind = TypeVar("Kind", GpuDetails, HostDetails, TreeDetails)
LOOKED_S = 5.0
"""A mark that is older counts no more."""


def _mark(folder: Path) -> Path:
    return folder / "details.looked"


def _file(folder: Path, kind: str) -> Path:
    return folder / f"details.{kind}"


class DetailFiles:
    """Implements ``model.ports.DetailDesk`` in a run's folder. Each kind is put by one thread."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._mark = str(_mark(folder))

    def wanted(self) -> bool:
        """Whether a page is open, by the age of its mark."""
        try:
            return abs(time.time() - os.stat(self._mark).st_mtime) < LOOKED_S  # noqa: PTH116  (1 Hz, three threads)
        except OSError:
            return False

    def put(self, detail: Detail) -> None:
        """Rewrite the file of its kind."""
        with contextlib.suppress(OSError):
            descriptor = os.open(
                _file(self._folder, KINDS[type(detail)]), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600
            )
            try:
                os.pwrite(descriptor, framed(encode_line(detail)), 0)
            finally:
                os.close(descriptor)


class DetailReader:
    """Implements the screen's Source."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def look(self) -> MachineDetails:
        """Renew the mark, and read what there is; what is missing or damaged is None."""
        with contextlib.suppress(OSError):
            _mark(self._folder).touch(mode=0o600)
        return MachineDetails(
            gpus=self._newest("gpus", GpuDetails),
            host=self._newest("host", HostDetails),
            tree=self._newest("tree", TreeDetails),
        )

    def _newest(self, kind: str, type_: type[Kind]) -> Kind | None:
        with contextlib.suppress(msgspec.MsgspecError):
            return msgspec.json.decode(read_framed(_file(self._folder, kind)), type=type_)
        return None
