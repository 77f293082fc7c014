"""Sample images of a run of another machine: the one that is looked at is copied here, piece by piece."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from ....model.checkpoints.sample import Sample
from ....store.home import make_private
from ....store.mirror.journal_copy import replace_copy
from ..opened_run import OpenedRun
from .far_run import FarRun

FOLDER = "samples"
MOST = 64
"""Pictures of one run that are kept."""
LONGEST_BYTES = 64 << 20
"""Larger files are not decoded by any screen."""


class FarSamples:
    """Implements the screen's SampleFolder. ``copy``: the folder of the run's copy."""

    def __init__(self, far: FarRun, run: OpenedRun, copy: Path) -> None:
        self._far, self._run, self._folder = far, run, copy / FOLDER

    @property
    def directory(self) -> str | None:
        """The output folder there, as far as it is known by now."""
        return self._run.output_dir

    def newest(self) -> Sequence[Sample]:
        return tuple(self._far.known("samples", tuple[Sample, ...]))

    def fetch(self, sample: Sample) -> str:
        """A piece for each question, so that what the run gains comes between them."""
        if sample.size_bytes > LONGEST_BYTES:
            raise RuntimeError(f"{sample.size_bytes / 1e6:,.0f} MB are not copied here")
        state = f"{sample.path}\0{sample.mtime}\0{sample.size_bytes}"
        name = hashlib.sha256(state.encode(errors="surrogateescape")).hexdigest()[:16]
        path = self._folder / f"{name}{Path(sample.name).suffix}"
        try:
            if not path.exists():
                data = bytearray()
                while len(data) < sample.size_bytes:
                    piece: bytes = self._far.asked("sample", bytes, path=sample.path, offset=len(data))
                    if not piece:
                        break
                    data += piece
                make_private(self._folder)
                replace_copy(path, bytes(data))
                self._remove_oldest()
        except OSError as error:
            raise RuntimeError(f"{self._folder}: {error.strerror or error}") from error
        return str(path)

    def _remove_oldest(self) -> None:
        by_age = sorted(self._folder.iterdir(), key=lambda path: -path.stat().st_mtime_ns)
        for path in by_age[MOST:]:
            path.unlink(missing_ok=True)
