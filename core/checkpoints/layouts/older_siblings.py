"""What a checkpoint folder lacks in comparison with an older one of the same series.

The files' own make, if no rule is known: a trainer writes the same members at each save, so a folder without one of
them was not finished. Known false alarm: a trainer that saves its optimizer at some saves only; then the older one with
the optimizer is the better resume point.
"""

import os
import re
from pathlib import Path

from ...model.checkpoints.checkpoint_names import is_part
from ...model.checkpoints.other_files import is_other_file, is_text_of_unknown_use, kind_of_name, says_state
from ..formats.damage import Torn
from .members import Members

_NUMBERS = re.compile(r"\d+")
_MOST = 20_000
"""An output folder with more entries is not searched."""


def missing_beside_older(members: Members) -> list[Torn]:
    """At most one finding: a member that the next older folder of the series has."""
    older = _next_older(members.root)
    if older is None:
        return []
    try:
        theirs = sorted(entry.name for entry in os.scandir(older) if entry.is_file(follow_symlinks=False))
    except OSError:
        return []
    own = {kind_of_name(name) for name in members.top()}
    for name in theirs:
        if _belongs(name) and kind_of_name(name) not in own:
            return [Torn(f"{name} is missing: {older.name} beside it has one", understood=False)]
    return []


def _belongs(name: str) -> bool:
    """Whether a member is one of each save: no log, config or sample that may come and go."""
    return is_part(name) or not is_other_file(name) or (is_text_of_unknown_use(name) and says_state(name))


def _next_older(folder: Path) -> Path | None:
    """The folder beside it whose name differs in its numbers only and has the next smaller ones."""
    kind, own = kind_of_name(folder.name), _numbers(folder.name)
    if not own:
        return None
    best: tuple[tuple[int, ...], str] | None = None
    try:
        with os.scandir(folder.parent) as entries:
            for count, entry in enumerate(entries):
                if count > _MOST:
                    return None
                if kind_of_name(entry.name) != kind or not entry.is_dir(follow_symlinks=False):
                    continue
                numbers = _numbers(entry.name)
                if numbers < own and (best is None or numbers > best[0]):
                    best = (numbers, entry.name)
    except OSError:
        return None
    return None if best is None else folder.parent / best[1]


def _numbers(name: str) -> tuple[int, ...]:
    return tuple(int(number) for number in _NUMBERS.findall(name)[:4] if len(number) < 16)
