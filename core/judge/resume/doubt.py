"""A complete checkpoint that the trainer does not start with: passed over, and kept.

Its structure and all its bytes were verified before the launch, so the trainer's end stands against ours. The first
end may have any cause; the second one before a step with the same checkpoint, or the first that says that it cannot be
read, goes to the one before. If that one ends with the same last line, neither is to blame (``weights_only`` of torch
2.6, a damaged data file, a library of another version): nothing is passed over any more, the run goes back to the
newest and is held, until a resume has worked. An attempt that made a step has read its checkpoint: whatever fails later
is something else, and so is a failure whose message names another file, or whose class lies elsewhere (memory, GPU,
disk, network, port, driver, imports).

Source: a save without one of the keys that the loader wants. It was tried three times and the run given up, while the
one before it was whole.
"""

import re
from typing import Literal

import msgspec

from ...model.text.patterns import LazyPattern
from .checkpoint_index import CheckpointIndex, Doubt
from .known_checkpoint import base_name

DOUBTED = "the trainer could not read it; it is complete and is kept"
"""Why it is passed over, for people."""
STARTS = 2
"""Ends before a first step with one checkpoint, in a row, after which it is doubted: one may have another cause."""

Unread = Literal["", "passed_over", "cleared"]


def unread(index: CheckpointIndex, path: str, message: str, *, starts: int, said: str, has_older: bool) -> Unread:
    """What follows for ``path`` after ``starts`` attempts in a row that were given it and made no step.

    ``message``: the failure in a sentence; ``said``: its last line, without numbers and paths.
    """
    doubt = index.doubt
    if doubt.cleared or names_another_file(message, path):
        return ""
    if doubt.open and path not in doubt.paths and said and said == doubt.said:
        return "cleared"
    return "passed_over" if starts >= STARTS and has_older and path not in doubt.paths else ""


def passed_over(index: CheckpointIndex, path: str, said: str) -> CheckpointIndex:
    """Pass over ``path`` as well."""
    doubt = Doubt(paths=(*index.doubt.paths, path), open=True, said=said)
    return msgspec.structs.replace(index, doubt=doubt)


def written_anew(index: CheckpointIndex, path: str) -> CheckpointIndex:
    """Nothing is said of another save at this path."""
    if path not in index.doubt.paths:
        return index
    rest = tuple(each for each in index.doubt.paths if each != path)
    return msgspec.structs.replace(index, doubt=msgspec.structs.replace(index.doubt, paths=rest))


def cleared(index: CheckpointIndex) -> CheckpointIndex:
    """Pass over none: they are not to blame."""
    return msgspec.structs.replace(index, doubt=Doubt(cleared=True))


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
