"""What the journals of runs know of the checkpoints in a folder, beyond a quick look at them.

A quick look reads structure and sizes; a run reads every value of what it saved, and knows when its loss became NaN.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from ...model.checkpoint import Checkpoint, CheckpointListing, newest_resumable
from ...model.story import RunStory
from ...store.journal import JournalTooNew, load_story
from ...store.run_lookup import list_runs
from ...views.state.concerns import AFTER_DIVERGENCE, AFTER_NAN, doubt_of, saved_after_nan
from .checkpoint_quality import RealPaths, folders_of

DAMAGED = frozenset({"torn", "corrupt", "nonfinite"})

Key = tuple[str, float, int]


class KnownListing(msgspec.Struct, frozen=True, kw_only=True):
    """A listing with the verdicts of journals. ``known``: paths of those that a journal knows as they are now.

    ``unused``: path → why an automatic restart does not use it, though it is complete. ``doubts``: path → what speaks
    against its weights, though a restart uses it.
    """

    listing: CheckpointListing
    known: frozenset[str]
    unused: Mapping[str, str]
    doubts: Mapping[str, str] = {}


def as_journals_know(home: Path, listing: CheckpointListing) -> KnownListing:
    """The listing with what the journals of the runs that save to its folders know."""
    real = RealPaths()
    keys = {c.path: _key(c, real) for c in listing.checkpoints}
    folders = {os.path.dirname(path) for path, _, _ in keys.values()}  # noqa: PTH120  of real paths, as text
    told = list(_told(home, folders, real)) if folders else []
    found, known, unused, doubts = [], set(), {}, {}
    for checkpoint in listing.checkpoints:
        of_it = [(story, there[key]) for story, there in told if (key := keys[checkpoint.path]) in there]
        found.append(_with_damage(checkpoint, [saved for _, saved in of_it]))
        if of_it:
            known.add(checkpoint.path)
        if why := _why_unused(of_it):
            unused[checkpoint.path] = why
        ours = (doubt_of(c, story) for story, c in of_it if story.origin(c) != "earlier")
        if AFTER_DIVERGENCE in ours:
            doubts[checkpoint.path] = AFTER_DIVERGENCE
    point = newest_resumable(found, unused)
    return KnownListing(
        listing=CheckpointListing(checkpoints=tuple(found), resume_point=None if point is None else point.path),
        known=frozenset(known),
        unused=unused,
        doubts=doubts,
    )


def _told(home: Path, folders: set[str], real: RealPaths) -> Iterator[tuple[RunStory, dict[Key, Checkpoint]]]:
    """The stories of the runs that save to these folders, newest first, each with its checkpoints."""
    for run in list_runs(home):
        if folders & folders_of(run):
            try:
                story = load_story(run.journal)
            except (JournalTooNew, OSError):
                continue
            yield story, {_key(c, real): c for c in story.checkpoints}


def _with_damage(checkpoint: Checkpoint, saved: list[Checkpoint]) -> Checkpoint:
    """The checkpoint, damaged if a journal knows that it is and the quick look did not see it."""
    damaged = next((c for c in saved if c.verdict in DAMAGED), None)
    if damaged is None or checkpoint.verdict in DAMAGED:
        return checkpoint
    return msgspec.structs.replace(
        checkpoint, verdict=damaged.verdict, reason=damaged.reason, nonfinite=damaged.nonfinite, nan=damaged.nan
    )


def _why_unused(of_it: list[tuple[RunStory, Checkpoint]]) -> str:
    """Why a restart passes over it: as the newest run says, or the one that saved it after its loss became NaN."""
    if any(story.origin(c) != "earlier" and saved_after_nan(c, story) for story, c in of_it):
        return AFTER_NAN
    aside = [story.set_aside.get(c.path) for story, c in of_it[:1]]
    return "".join(f"not used for a restart: {one.why}" for one in aside if one is not None)


def _key(checkpoint: Checkpoint, real: RealPaths) -> Key:
    """The same file as it was: a checkpoint that was written again has another time or size."""
    return real.of(checkpoint.path), checkpoint.mtime, checkpoint.size_bytes
