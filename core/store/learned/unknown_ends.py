"""Ends of logs without a known cause, counted from run to run: ``<home>/unknown_ends.json``.

A line is kept without the parts that differ between two occurrences. A file that is unreadable or damaged counts as
empty, and what cannot be written is lost; the run is not affected.
"""

import contextlib
from collections.abc import Mapping
from pathlib import Path

import msgspec

from ..atomic import write_atomically

KEPT = 200
"""Ends that are kept, those that were seen last."""


class UnknownEnds:
    """How often each end was seen on this machine. Reading and writing never raise."""

    def __init__(self, home: Path) -> None:
        self.path = home / "unknown_ends.json"

    def read(self) -> Mapping[str, int]:
        """Times by skeleton, the one seen last at the end."""
        try:
            return msgspec.json.decode(self.path.read_bytes(), type=dict[str, int])
        except (OSError, msgspec.MsgspecError):
            return {}

    def add(self, skeleton: str) -> None:
        known = dict(self.read())
        known[skeleton] = known.pop(skeleton, 0) + 1
        with contextlib.suppress(OSError):
            write_atomically(self.path, msgspec.json.encode(dict(list(known.items())[-KEPT:])))
