"""Troubles of trainwatch that anybody can see from outside: its disk, the output disk, its journal."""

import os
from collections.abc import Iterator
from pathlib import Path

from ...model.run import RunSpec
from ...model.situation import Trouble
from ...model.story import RunStory
from ...store.run_directory import RunDirectory

FULL_BYTES = 1 << 20
"""Less free space than this is full: a checkpoint, a log and a journal write more at once."""
JOURNAL_GONE = "was deleted; what happened before cannot be told; the supervisor continues it in a new file"


def place_troubles(run: RunDirectory, spec: RunSpec, story: RunStory, *, watched: bool) -> Iterator[Trouble]:
    """``watched``: a supervisor holds the run."""
    if (why := unusable(run.path)) is not None:
        yield Trouble(
            kind="state_disk",
            level="danger",
            text=f"{run.path}: {why}; events are told but not kept: free some space there, or make it writable",
        )
    if watched and story.run is None and not run.journal.exists():
        yield Trouble(kind="journal", level="danger", text=f"{run.journal} {JOURNAL_GONE}")
    if spec.output_dir is not None and (why := unusable(_existing(Path(spec.output_dir)))) is not None:
        yield Trouble(
            kind="output_disk",
            level="danger",
            text=f"{spec.output_dir}: {why}; the trainer cannot save: free some space there, or make it writable",
        )


def unusable(folder: Path) -> str | None:
    """Why no file can be written into ``folder``; None if one can, as far as can be told without writing."""
    try:
        room = os.statvfs(folder)
    except FileNotFoundError:
        return "does not exist"
    except OSError as error:
        return f"cannot be looked at ({error.strerror})"
    if room.f_flag & os.ST_RDONLY:
        return "its file system is mounted read-only"
    if not os.access(folder, os.W_OK | os.X_OK):
        return "it may not be written"
    if room.f_blocks and room.f_bavail * room.f_frsize < FULL_BYTES:
        return f"its disk is full ({room.f_bavail * room.f_frsize / 1e6:.1f} MB free)"
    if room.f_files and room.f_favail == 0:
        return "its file system has no free inodes"
    return None


def _existing(folder: Path) -> Path:
    return next((place for place in (folder, *folder.parents) if place.is_dir()), folder)
