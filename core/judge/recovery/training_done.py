"""Whether the training has done all it was asked to, although its process may still be there."""

import re

from ..state import JudgeState
from ..text.patterns import LazyPattern

FINAL = LazyPattern(r"(?<![a-z])final(?![a-z])", re.IGNORECASE)
"""What trainers that print no end call their last checkpoint: ``model_final.pth``, ``checkpoint-final``."""
SAVE_SLACK_S = 30.0
"""A checkpoint that became complete this long before the last printed step still belongs to it (lines lag)."""


def ended_well(state: JudgeState) -> bool:
    """The last step is done, the log or a checkpoint's name said so, and no final save is missing or under way."""
    beat_t = state.attempt.beat_t
    own = [k for k in state.shelf.known if k.own]
    named = beat_t is not None and any(k.complete and k.t >= beat_t - SAVE_SLACK_S and _is_final(k.path) for k in own)
    if not (last_step_done(state) or ((named or state.reading.finished_words) and not far_from_end(state))):
        return False
    if not own or beat_t is None:
        return True
    if any(not k.complete and k.bad is None and k.t >= beat_t - SAVE_SLACK_S for k in own):
        return False
    return state.reading.finished_words or any(k.complete and k.t >= beat_t - SAVE_SLACK_S for k in own)


def _is_final(path: str) -> bool:
    return FINAL.search(path.rstrip("/").rpartition("/")[2]) is not None


def proven_done(state: JudgeState) -> bool:
    """It ended well, and not only by its counter: the log said so, or the final checkpoint is there."""
    own = any(k.own and k.complete for k in state.shelf.known)
    return ended_well(state) and (state.reading.finished_words or own)


def last_step_done(state: JudgeState) -> bool:
    """The step counter stands at its total, and in the last epoch where it counts within epochs."""
    progress = state.progress
    if progress.step is None or progress.total_steps is None or progress.step < progress.total_steps:
        return False
    reading = state.reading.now
    if not reading.per_epoch:
        # Whether a bar counts within the epoch shows only at the first turn.
        several = progress.total_epochs is not None and progress.total_epochs > 1 and progress.epoch is not None
        return not (several and (progress.epoch or 0) <= (0 if reading.zero_based else 1))
    if progress.total_epochs is None or progress.epoch is None:
        return False
    return int(progress.epoch) >= progress.total_epochs - (1 if reading.zero_based else 0)


def far_from_end(state: JudgeState) -> bool:
    """Words of an end in the middle of the run ("epoch finished") are not the end."""
    progress = state.progress
    if progress.step is None or progress.total_steps is None:
        return False
    return progress.step < progress.total_steps * NEARLY and not state.reading.now.per_epoch


NEARLY = 0.98
"""Share of the steps: early stopping and rounded totals end a little before it."""
