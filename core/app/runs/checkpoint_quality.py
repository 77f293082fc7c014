"""How good checkpoints are: scores from the journals of the runs that wrote them, and ratings of people."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from ...model.checkpoint import KEPT_FROM, Checkpoint, Evaluation, Rating
from ...model.checkpoint_results import KeepReason
from ...store.journal import JournalTooNew, load_story
from ...store.learned import ListUnreadable, read_ratings
from ...store.run_directory import RunDirectory, RunUnreadable
from ...store.run_lookup import list_runs
from ..errors import CliError, ExitCode

BEST: KeepReason = "has the best score"
RATED: KeepReason = "rated 4 or 5 stars"


class Quality(msgspec.Struct, frozen=True, kw_only=True):
    """``best``: no other checkpoint of its run has a better score."""

    evaluation: Evaluation | None = None
    best: bool = False
    rating: Rating | None = None


UNKNOWN = Quality()


def qualities(home: Path, checkpoints: Iterable[Checkpoint]) -> dict[str, Quality]:
    """By path, those of which something is known. Reads the journals of the runs that saved beside them.

    Raises CliError if the ratings cannot be read.
    """
    real = RealPaths()
    wanted = {(real.of(c.path), c.mtime): c.path for c in checkpoints}
    folders = {os.path.dirname(path) for path, _ in wanted}  # noqa: PTH120  of real paths, as text
    found: dict[str, Quality] = {}
    for run in reversed(list_runs(home)):
        if folders & folders_of(run):
            for key, quality in _of_run(run).items():
                if key in wanted:
                    found[wanted[key]] = quality
    for rating in ratings_here(home):
        if rating.key in wanted:
            path = wanted[rating.key]
            found[path] = msgspec.structs.replace(found.get(path, UNKNOWN), rating=rating)
    return found


class RealPaths:
    """The real paths of many entries of few folders: one call to the system for each."""

    def __init__(self) -> None:
        self._folders: dict[str, str] = {}

    def of(self, path: str) -> str:
        folder, name = os.path.split(path)
        if folder not in self._folders:
            self._folders[folder] = os.path.realpath(folder)
        found = os.path.join(self._folders[folder], name)  # noqa: PTH118  thousands
        return os.path.realpath(found) if os.path.islink(found) else found  # noqa: PTH114


def worth_keeping(found: Mapping[str, Quality]) -> dict[str, KeepReason]:
    """Path → why a retention keeps it."""
    rated: dict[str, KeepReason] = {
        path: RATED for path, q in found.items() if q.rating is not None and q.rating.stars >= KEPT_FROM
    }
    return rated | {path: BEST for path, q in found.items() if q.best}


def rated_paths(home: Path) -> frozenset[tuple[str, float]]:
    """(real path, modification time) of what a person rated so well that it is kept; none if that cannot be read."""
    try:
        return frozenset(r.key for r in read_ratings(home) if r.stars >= KEPT_FROM)
    except (ListUnreadable, OSError):
        return frozenset()


def ratings_here(home: Path) -> tuple[Rating, ...]:
    """All ratings. Raises CliError."""
    try:
        return read_ratings(home)
    except ListUnreadable as error:
        raise CliError(ExitCode.USAGE, str(error)) from None
    except OSError as error:
        raise CliError(ExitCode.FAILED, f"{error.filename}: {error.strerror}") from None


def folders_of(run: RunDirectory) -> set[str]:
    """The real paths of the folders that a run saves to; none if its spec cannot be read."""
    try:
        return {os.path.realpath(folder) for folder in run.load_spec().output_folders}
    except RunUnreadable:
        return set()


def _of_run(run: RunDirectory) -> dict[tuple[str, float], Quality]:
    try:
        story = load_story(run.journal)
    except (JournalTooNew, OSError):
        return {}
    best = None if story.best is None else story.best.path
    return {
        (os.path.realpath(each.path), each.mtime): Quality(evaluation=each, best=each.path == best)
        for each in story.evaluations.values()
    }
