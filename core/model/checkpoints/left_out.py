"""A story without most of its old checkpoints: an outline of it, whose size does not grow with their number."""

import msgspec

from ..incident import ENDED_WITH_ATTEMPT, NAN_CLASSES
from ..story import RunStory
from .checkpoint import Checkpoint

NEWEST = 64
"""Checkpoints that an outline names whatever is known of them: most of what follows is about the newest, and trainers
and retention keep fewer."""


def outline(story: RunStory) -> tuple[RunStory, tuple[str, ...]]:
    """The story without older checkpoints, and their paths. ``left_out`` of the story counts them, with earlier ones.

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
    return short, tuple(c.path for c in gone)


def counts_by_loss(story: RunStory) -> bool:
    """Whether it matters which checkpoints were saved after the loss became NaN."""
    return any(i.class_ in NAN_CLASSES and (i.open or i.ending == ENDED_WITH_ATTEMPT) for i in story.incidents)


def _is_plain(c: Checkpoint, story: RunStory) -> bool:
    return (
        c.verdict == "complete"
        and c.understood
        and c.path not in story.evaluations
        and c.path not in story.evaluations_begun
    )
