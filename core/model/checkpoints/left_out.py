"""A story without most of its old checkpoints: an outline of it, whose size does not grow with their number."""

from collections.abc import Sequence

import msgspec

from ..incident import NAN_CLASSES
from ..story import RunStory
from .checkpoint import AgeOrder, Checkpoint, age_order

NEWEST = 64
"""Checkpoints that an outline names whatever is known of them: most of what follows is about the newest, and trainers
and retention keep fewer."""
FEWEST = 32
"""Of the newest checkpoints a story names at least so many, or all. Some of them may have been removed since."""


def outline(story: RunStory) -> tuple[RunStory, tuple[Checkpoint, ...]]:
    """The story without older checkpoints, and these. ``left_out`` of the story counts them, with earlier ones.

    Those that are left out are complete, and no evaluation is of them. All stay while it matters which of them were
    saved after the loss became NaN.
    """
    older = story.checkpoints[:-NEWEST]
    gone = [c for c in older if _is_plain(c, story)]
    if not gone or counts_by_loss(story):
        return story, ()
    paths = {c.path for c in gone}
    short = msgspec.structs.replace(
        story,
        checkpoints=tuple(c for c in story.checkpoints if c.path not in paths),
        checkpoint_times={path: t for path, t in story.checkpoint_times.items() if path not in paths},
        origins={path: origin for path, origin in story.origins.items() if path not in paths},
        left_out=story.left_out + len(gone),
    )
    return short, tuple(gone)


def newer_of(known: Checkpoint | None, gone: Sequence[Checkpoint]) -> Checkpoint | None:
    """The newest checkpoint that is left out: ``known``, or one of those that are left out now."""
    return max((*([] if known is None else [known]), *gone[-1:]), key=_age, default=None)


def names_newest(story: RunStory, newest_left_out: Checkpoint | None) -> bool:
    """Whether the newest checkpoints of the run, at least FEWEST, are all named."""
    if newest_left_out is None:
        return True
    newest = story.checkpoints[-FEWEST:]
    return len(newest) == FEWEST and _age(newest[0]) > _age(newest_left_out)


def _age(c: Checkpoint) -> AgeOrder:
    return age_order(c.name, c.mtime, c.step, c.epoch)


def counts_by_loss(story: RunStory) -> bool:
    """Whether it matters which checkpoints were saved after the loss became NaN."""
    return any(i.class_ in NAN_CLASSES and (i.open or i.ended_by == "attempt") for i in story.incidents)


def _is_plain(c: Checkpoint, story: RunStory) -> bool:
    return (
        c.verdict == "complete"
        and c.understood
        and c.path not in story.evaluations
        and c.path not in story.evaluations_begun
    )
