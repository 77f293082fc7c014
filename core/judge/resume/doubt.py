"""A complete checkpoint that the trainer says it cannot read: passed over once, and kept.

Its structure and all its bytes were verified before the launch, so the trainer's word stands against ours. The next
attempt resumes from the one before. If the same failure comes from that one too, neither is to blame (``weights_only``
of torch 2.6, a damaged data file, a library of another version): the run goes back to the newest, and no checkpoint is
passed over until a resume has worked. An attempt that made a step has read its checkpoint: whatever fails later is
something else, and so is a failure whose message names another file.
"""

import re
from typing import Literal

import msgspec

from ...model.text.patterns import LazyPattern
from .checkpoint_index import CheckpointIndex, Doubt
from .known_checkpoint import base_name

DOUBTED = "the trainer could not read it; it is complete and is kept"
"""Why it is passed over, for people."""

Outcome = Literal["passed_over", "cleared", "none"]


def cannot_be_read(index: CheckpointIndex, path: str, message: str) -> tuple[CheckpointIndex, Outcome]:
    """Take the trainer's word that it cannot read ``path``, before its first step. ``message``: what it printed."""
    doubt = index.doubt
    if doubt.cleared or (doubt.open and doubt.path == path) or names_another_file(message, path):
        return index, "none"
    if doubt.open:
        return msgspec.structs.replace(index, doubt=Doubt(cleared=True)), "cleared"
    return msgspec.structs.replace(index, doubt=Doubt(path=path, open=True)), "passed_over"


def worked(index: CheckpointIndex) -> CheckpointIndex:
    """A resume has worked: what is said of another checkpoint from now on is said for the first time."""
    doubt = msgspec.structs.replace(index.doubt, open=False, cleared=False)
    return index if doubt == index.doubt else msgspec.structs.replace(index, doubt=doubt)


def names_another_file(message: str, path: str) -> bool:
    """Whether the message names files by their paths, and none of them is the checkpoint or in it."""
    named = [found.group() for found in _PATH.finditer(message)]
    name = base_name(path)
    return bool(named) and not any(name in place.split("/") for place in named)


_PATH = LazyPattern(r"(?<![\w/])(?:~|\.{0,2})/[\w./+@=-]+|[\w.+@=-]+(?:/[\w.+@=-]+)*/[\w.+@=-]+\.\w+", re.ASCII)
"""A path with its folder; of a relative one, only with a suffix ("read/write" is none)."""
