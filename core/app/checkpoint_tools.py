"""List, verify, show, compare, prune and back up checkpoints by their paths. Every failure is a CliError."""

import getpass
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from ..checkpoints.inspection import inspect, verify
from ..checkpoints.layouts.directory import is_checkpoint_directory
from ..checkpoints.listing import list_checkpoints, show
from ..checkpoints.manage.comparison import ComparisonRefusedError, compare
from ..checkpoints.manage.copies import Backup, BackupRefusedError, backup
from ..checkpoints.manage.pruning import PruneOutcome, apply_prune, plan_prune
from ..model.checkpoint import MOST_STARS, Checkpoint, Comparison, Listing, Overview, PrunePlan, Rating, age_order
from ..model.checkpoint_files import is_other_folder
from ..model.text import printable, typed
from ..store.journal import JournalTooNew, load_story
from ..store.learned import put_rating
from .errors import CliError, ExitCode, ends_verb, file_errors
from .runs.checkpoint_quality import KnownListing, Quality, as_journals_know, worth_keeping
from .runs.known_runs import all_runs, find_run, home

__all__ = ["Comparison", "KnownListing", "Overview", "PruneOutcome", "PrunePlan", "Quality", "apply_prune"]

LEVELS = 3
"""``lightning_logs/version_0/checkpoints/last.ckpt`` lies two below the folder that a person names."""


def checkpoints_in(directory: str) -> tuple[KnownListing, tuple[Checkpoint, ...]]:
    """The checkpoints of a directory, newest first, and what else may be the state of a training.

    A quick look at each, and what the journals of runs know of it. If none of a known make lies directly in it, those
    of the folders below it: a trainer that is given ``output`` may make ``output/v0-20261128/checkpoint-500``. Of
    several such folders none is said to be the one to resume from.
    """
    path = _directory(directory)
    with file_errors(directory):
        found = list_checkpoints(path)
        known_make = any(not each.unknown_make for each in found.checkpoints)
        below = () if known_make else _below(path, LEVELS)
        inner = tuple(c for folder in below for c in list_checkpoints(folder).checkpoints if not c.unknown_make)
        if inner:
            found = Listing.of(sorted(inner, key=lambda c: age_order(c.name, c.mtime, c.step, c.epoch), reverse=True))
        known = as_journals_know(home(), found)
    if len({Path(each.path).parent for each in inner}) > 1:  # of several trainings, perhaps
        known = msgspec.structs.replace(known, listing=msgspec.structs.replace(known.listing, resume_point=None))
    return known, found.others


def _below(folder: Path, levels: int) -> Iterator[Path]:
    """Folders in which a trainer may have made its own for a run; no checkpoints themselves."""
    for each in sorted(folder.iterdir()):
        if each.is_dir() and not (each.is_symlink() or is_other_folder(each.name) or is_checkpoint_directory(each)):
            yield each
            if levels > 1:
                yield from _below(each, levels - 1)


def verify_one(name: str, *, deep: bool) -> Checkpoint:
    """Verify one checkpoint. A folder that holds several is refused (exit code 2)."""
    path = _existing(name)
    inside = () if path.is_file() or is_checkpoint_directory(path) else list_checkpoints(path).checkpoints
    if len(inside) > 1:
        example = printable(inside[0].path)
        raise CliError(
            ExitCode.USAGE, f"{name}: holds {len(inside)} checkpoints; verify one of them, such as {example}"
        )
    return verify(path, deep=deep)


def overview_of(name: str) -> Overview:
    """What a checkpoint contains: members, tensors, training state."""
    overview = show(_existing(name))
    if overview is None:
        raise CliError(ExitCode.FAILED, f"{name}: is not a checkpoint; see `{_listing(name)}`")
    return overview


def compare_two(a: str, b: str) -> Comparison:
    """How far the weights moved between two checkpoints."""
    with ends_verb(ExitCode.FAILED, ComparisonRefusedError):
        return compare(_existing(a), _existing(b))


def prune_plan(directory: str, keep: int) -> PrunePlan:
    """Which checkpoints could be deleted if ``keep`` verified ones stay. Deletes nothing."""
    with ends_verb(ExitCode.USAGE, ValueError, place="--keep: "):
        return plan_prune(_directory(directory), keep, good=lambda found: worth_keeping(quality_of(found)))


def quality_of(checkpoints: Iterable[Checkpoint]) -> Mapping[str, Quality]:
    """By path: scores of evaluations, and what a person thinks of them."""
    return as_journals_know(home(), Listing(checkpoints=tuple(checkpoints), resume_point=None)).quality


def inspect_one(name: str) -> Checkpoint | None:
    """A checkpoint by its path, with its quick verdict; None if it is none."""
    return inspect(Path(name))


def rate(name: str, stars: int, note: str) -> tuple[Checkpoint, Rating]:
    """Rate a checkpoint: a path, or the name of one that a known run saved. Raises CliError."""
    if not 0 <= stars <= MOST_STARS:
        raise CliError(ExitCode.USAGE, f"{stars} is no rating: give 1 to {MOST_STARS} stars; 0 takes a rating back")
    found = inspect(_rated(name))
    if found is None:
        raise CliError(ExitCode.FAILED, f"{name}: is not a checkpoint; see `{_listing(name)}`")
    rating = Rating(
        path=os.path.realpath(found.path), mtime=found.mtime, stars=stars, note=note.strip(), by=getpass.getuser(),
        wall=time.time(),
    )  # fmt: skip
    with file_errors():
        put_rating(home(), rating)
    return found, rating


def _rated(name: str) -> Path:
    """The checkpoint that is meant: an existing path, else that of the newest run which saved one of this name."""
    if Path(name).exists():
        return Path(name)
    for run in all_runs():
        try:
            known = load_story(run.journal).checkpoints
        except (JournalTooNew, OSError):
            continue
        there = [Path(each.path) for each in reversed(known) if each.name == name and Path(each.path).exists()]
        if there:
            return there[0]
    raise CliError(ExitCode.NOT_FOUND, f"{name}: no such checkpoint, and no known run saved one of this name")


def back_up(name: str, destination: str) -> Backup:
    """Copy a checkpoint and verify the copy. If it fails, nothing is left of the copy.

    A destination with a slash at its end, or without a suffix for a file, is a folder, which is made if missing.
    """
    source, target = _existing(name), Path(destination)
    folder = destination.endswith("/") or (source.is_file() and not target.suffix)
    if not target.absolute().parent.is_dir():
        raise CliError(ExitCode.NOT_FOUND, f"{target.parent}: no such directory; create it first")
    made = folder and not target.exists()
    try:
        with file_errors(destination), ends_verb(ExitCode.FAILED, BackupRefusedError):
            if made:
                target.mkdir()
            return backup(source, target)
    finally:
        if made:
            with suppress(OSError):  # it is not empty if the copy was made
                target.rmdir()


def _listing(name: str) -> str:
    """The command that lists what is beside a path that was named; DIR if even its folder is not there."""
    parent = Path(name).parent
    return typed("checkpoints list", str(parent) if parent.is_dir() else "DIR")


def _existing(name: str) -> Path:
    path = Path(name)
    if not path.exists():
        raise CliError(ExitCode.NOT_FOUND, f"{name}: no such checkpoint; see `{_listing(name)}`")
    return path


def saved_by(name: str | None) -> str:
    """The output folder of the run of this name, without one of this project's; the name itself if it is a folder."""
    if name is not None and Path(name).is_dir():
        return name
    with suppress(CliError, JournalTooNew):
        run = find_run(name, lambda _: None)
        spec = run.load_spec().with_outputs(load_story(run.journal).outputs)
        return str(Path(spec.cwd, *spec.output_folders[:1])) if spec.output_folders else name or ""
    return name or ""


def _directory(name: str) -> Path:
    if not name:
        raise CliError(ExitCode.USAGE, "name the folder that the trainer saves into")
    path = Path(name)
    if not path.is_dir():
        raise CliError(ExitCode.NOT_FOUND, f"{name}: no such directory; give the trainer's output directory")
    return path
