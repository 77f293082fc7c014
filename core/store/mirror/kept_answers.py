"""The newest answers of another machine, kept beside the copy of a run: what a page showed last, with its time."""

import contextlib
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ..clock import boot_seconds
from ..home import make_private
from .journal_copy import replace_copy

FOLDER = "answers"
MOST = 64
"""Answers of one run: its pages, and the evidence of its newest incidents."""
LONGEST_BYTES = 4 << 20
AGAIN_S = 5.0
"""A page that asks every second has its answer written so often, and at once if it is longer than before."""


class Kept(NamedTuple):
    """``wall``: when it was given, by the clock here. ``data``: msgpack."""

    wall: float
    data: bytes


class KeptAnswers:
    """``run``: the folder of the copy; as long as there is none, nothing is kept. Errors of files are ignored."""

    def __init__(self, run: Path) -> None:
        self._run = run
        self._written: dict[Path, tuple[float, int]] = {}

    def keep(self, what: str, values: Mapping[str, Any], answer: Kept) -> None:
        """In place of the one before to the same question; the oldest go."""
        if len(answer.data) > LONGEST_BYTES or not self._run.is_dir():
            return
        with contextlib.suppress(OSError):
            path = self._path(what, values)
            at, size = self._written.get(path, (-AGAIN_S, 0))
            if boot_seconds() - at < AGAIN_S and len(answer.data) <= size:
                return
            self._written[path] = (boot_seconds(), len(answer.data))
            new = not path.exists()
            make_private(path.parent)
            replace_copy(path, msgspec.msgpack.encode(tuple(answer)))
            if new:
                self._remove_oldest()

    def find(self, what: str, values: Mapping[str, Any]) -> Kept | None:
        """The newest answer to this question."""
        with contextlib.suppress(OSError, msgspec.MsgspecError):
            return Kept(*msgspec.msgpack.decode(self._path(what, values).read_bytes(), type=tuple[float, bytes]))
        return None

    def _path(self, what: str, values: Mapping[str, Any]) -> Path:
        question = msgspec.msgpack.encode((what, sorted(values.items())))
        return self._run / FOLDER / f"{hashlib.sha256(question).hexdigest()[:32]}.msgpack"

    def _remove_oldest(self) -> None:
        by_age = sorted((self._run / FOLDER).glob("*.msgpack"), key=lambda path: -path.stat().st_mtime_ns)
        for path in by_age[MOST:]:
            path.unlink(missing_ok=True)
