"""Finds the sample images of a run below its output directory, within limits, and parses their step from the name."""

import os
import re
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from ...model.checkpoints.sample import Sample
from ...model.text.path_globs import matches

SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".webp"})
SAMPLE_FOLDER = re.compile(r"sample|preview|validation|^val$|^eval|generated|^images?$|^grids?$", re.IGNORECASE)
"""Kohya writes into ``sample``, DiT and most others into ``samples``; trackers into ``images``."""
DEPTH = 4
ENTRIES = 50_000
"""Most entries that are read, for output directories that contain a data set."""
NEWEST = 300

_KOHYA = re.compile(r"_(e?)(\d{6})_\d{2}_\d{14}")
"""``NAME_000500_00_20251121232000_42.png`` (a step), ``NAME_e000004_00_…`` (an epoch)."""
_STEP = re.compile(r"(?:global[-_]?step|steps?|iter(?:ation)?s?|(?<![a-z])it|gs)[-_= ]?(\d+)", re.IGNORECASE)
_EPOCH = re.compile(r"(?:epochs?|(?<![a-z])ep|(?<![a-z])e)[-_= ]?(\d+)", re.IGNORECASE)
_STEP_AFTER = re.compile(r"(?<!\d)(\d+)steps?", re.IGNORECASE)
_NUMBER = re.compile(r"(?<!\d)(\d{3,9})(?!\d)")
DIGITS = 10
"""A number this long is a seed or a date."""


def find_samples(directory: Path, globs: Sequence[str] = (), newest: int = NEWEST) -> tuple[Sample, ...]:
    """Return the newest pictures below ``directory``, newest first.

    Those whose path matches one of ``globs`` (``sample_globs`` of a preset); if none does, those of folders named for
    samples; if there are none, all.
    Links are not followed. A directory that does not exist has none. Raises OSError if it cannot be read.
    """
    if not directory.is_dir():
        return ()
    matching: list[Sample] = []
    in_folders: list[Sample] = []
    elsewhere: list[Sample] = []
    for entry, inside in _walk(directory):
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError:  # deleted since
            continue
        if not stat.S_ISREG(status.st_mode):
            continue
        named = inside or SAMPLE_FOLDER.search(Path(entry.name).stem) is not None
        path = Path(entry.path).relative_to(directory)
        step, epoch = moment_of(path)
        expected = bool(globs) and matches(path.as_posix(), globs)
        (matching if expected else in_folders if named else elsewhere).append(
            Sample(
                path=entry.path, name=entry.name, size_bytes=status.st_size, mtime=status.st_mtime, step=step,
                epoch=epoch,
            )
        )  # fmt: skip
    found = matching or in_folders or elsewhere
    return tuple(sorted(found, key=lambda s: (-s.mtime, s.name))[:newest])


def _walk(directory: Path) -> Iterator[tuple["os.DirEntry[str]", bool]]:
    """(picture, whether it is in a folder named for samples), breadth first, within DEPTH and ENTRIES."""
    folders: list[tuple[str, int, bool]] = [(str(directory), 0, False)]
    seen = 0
    first = True
    while folders:
        folder, depth, inside = folders.pop(0)
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    seen += 1
                    if seen > ENTRIES:
                        return
                    if entry.is_dir(follow_symlinks=False):
                        if depth < DEPTH and not entry.name.startswith("."):
                            named = inside or SAMPLE_FOLDER.search(entry.name) is not None
                            folders.append((entry.path, depth + 1, named))
                    elif Path(entry.name).suffix.lower() in SUFFIXES:
                        yield entry, inside
        except OSError:
            if first:
                raise
        first = False


def moment_of(path: Path) -> tuple[int | None, int | None]:
    """(step, epoch) in the name, else in the name of its folder. ``path``: relative to the output directory.

    >>> moment_of(Path("sample/luca_000500_00_20251121232000_42.png"))
    (500, None)
    """
    kohya = _KOHYA.search(path.name)
    if kohya is not None:
        number = int(kohya[2])
        return (None, number) if kohya[1] else (number, None)
    for name in (path.stem, *(p.name for p in path.parents)):
        step = _first(_STEP_AFTER, name)
        if step is None:
            step = _first(_STEP, name)
        epoch = _first(_EPOCH, name)
        if step is None and epoch is None:
            step = _first(_NUMBER, name)
        if step is not None or epoch is not None:
            return step, epoch
    return None, None


def _first(pattern: re.Pattern[str], name: str) -> int | None:
    found = pattern.search(name)
    return int(found[1]) if found is not None and len(found[1]) < DIGITS else None
