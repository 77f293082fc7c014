"""What is known of checkpoints from the journals of the runs that wrote them, and from ratings of people."""

import contextlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from ...model.checkpoint import DAMAGED, KEPT_FROM, Checkpoint, Evaluation, KeepReason, Listing, Rating
from ...model.story import RunStory
from ...store.journal import JournalTooNew, load_story
from ...store.learned import ListUnreadable, read_ratings
from ...store.run_directory import RunUnreadable
from ...store.run_lookup import list_runs
from ...views.state.concerns import DOUBTS, barred, doubts_in
from ..errors import file_errors

BEST: KeepReason = "has the best score"
RATED: KeepReason = "rated 4 or 5 stars"


class Quality(msgspec.Struct, frozen=True, kw_only=True):
    """``best``: no other checkpoint of its run has a better score."""

    evaluation: Evaluation | None = None
    best: bool = False
    rating: Rating | None = None


UNKNOWN = Quality()


def worth_keeping(found: Mapping[str, Quality]) -> dict[str, KeepReason]:
    """Path → why a retention keeps it."""
    rated: dict[str, KeepReason] = {
        path: RATED for path, q in found.items() if q.rating is not None and q.rating.stars >= KEPT_FROM
    }
    return rated | {path: BEST for path, q in found.items() if q.best}


def rated_well(home: Path, found: Sequence[Checkpoint]) -> dict[str, KeepReason]:
    """The same by what people think of them alone; none if that cannot be read."""
    keys = set[tuple[str, float]]()
    with contextlib.suppress(ListUnreadable, OSError):
        keys = {rating.key for rating in read_ratings(home) if rating.stars >= KEPT_FROM}
    return {c.path: RATED for c in found if (os.path.realpath(c.path), c.mtime) in keys}


# What the journals of runs know of the checkpoints in a folder, beyond a quick look at them.
#
# A quick look reads structure and sizes; a run reads every value of what it saved, and knows when its loss became NaN.

Key = tuple[str, float, int]


class KnownListing(msgspec.Struct, frozen=True, kw_only=True):
    """A listing with the verdicts of journals. ``known``: paths of those that a journal knows as they are now.

    ``unused``: path → why an automatic restart does not use it, though it is complete. ``doubts``: path → what speaks
    against its weights, though a restart uses it. ``quality``: path → scores and ratings, of those that have any.
    """

    listing: Listing
    known: frozenset[str]
    unused: Mapping[str, str]
    doubts: Mapping[str, str] = {}
    quality: Mapping[str, Quality] = {}


def as_journals_know(home: Path, listing: Listing) -> KnownListing:
    """The listing with what people and the journals of the runs that save to its folders know. Raises CliError."""
    keys = {c.path: _key(c) for c in listing.checkpoints}
    folders = {os.path.dirname(path) for path, _, _ in keys.values()}  # noqa: PTH120  of real paths, as text
    stories = []  # of the runs that save there, newest first; what cannot be read is left out
    for run in list_runs(home) if folders else ():
        with contextlib.suppress(RunUnreadable, JournalTooNew, OSError):
            if folders & {os.path.realpath(folder) for folder in run.load_spec().output_folders}:
                stories.append(load_story(run.journal))
    told = [(story, {_key(c): c for c in story.checkpoints}) for story in stories]
    found, known, unused, doubts = [], set(), {}, {}
    doubt_of = {id(story): doubts_in(story) for story in stories}
    for checkpoint in listing.checkpoints:
        of_it = [(story, there[key]) for story, there in told if (key := keys[checkpoint.path]) in there]
        damaged = next((saved for _, saved in of_it if saved.verdict in DAMAGED), None)
        if damaged is not None and checkpoint.verdict not in DAMAGED:  # the quick look did not see it
            seen = {name: getattr(damaged, name) for name in ("verdict", "reason", "nonfinite", "nan")}
            checkpoint = msgspec.structs.replace(checkpoint, **seen)  # noqa: PLW2901
        found.append(checkpoint)
        if of_it:
            known.add(checkpoint.path)
        aside = of_it[0][0].set_aside.get(of_it[0][1].path) if of_it else None  # as the newest run says
        ours = [
            (doubt, story) for story, c in of_it if story.origin(c) != "earlier" and (doubt := doubt_of[id(story)](c))
        ]
        bars = [doubt for doubt, story in ours if doubt in barred(story)]
        if bars:
            unused[checkpoint.path] = DOUBTS[bars[0]]
        elif aside is not None:
            unused[checkpoint.path] = f"not used for a restart: {aside.why}"
        if ours and not bars:
            doubts[checkpoint.path] = DOUBTS[ours[0][0]]
    return KnownListing(
        listing=Listing.of(found, unused),
        known=frozenset(known),
        unused=unused,
        doubts=doubts,
        quality=_qualities(home, {key[:2]: path for path, key in keys.items()}, stories),
    )


def _qualities(home: Path, wanted: Mapping[tuple[str, float], str], stories: list[RunStory]) -> dict[str, Quality]:
    """``wanted``: (real path, modification time) → path. Of several runs the newest one counts."""
    found: dict[str, Quality] = {}
    for story in reversed(stories):
        best = None if story.best is None else story.best.path
        for each in story.evaluations.values():
            if (key := (os.path.realpath(each.path), each.mtime)) in wanted:
                found[wanted[key]] = Quality(evaluation=each, best=each.path == best)
    with file_errors():
        ratings = read_ratings(home)
    for rating in ratings:
        if rating.key in wanted:
            path = wanted[rating.key]
            found[path] = msgspec.structs.replace(found.get(path, UNKNOWN), rating=rating)
    return found


def _key(checkpoint: Checkpoint) -> Key:
    """The same file as it was: a checkpoint that was written again has another time or size."""
    return os.path.realpath(checkpoint.path), checkpoint.mtime, checkpoint.size_bytes
