"""Checkpoints of a run as a list, and its resume point."""

from collections.abc import Iterable

import msgspec

from ..model.checkpoint import Checkpoint, newest_resumable, score_words
from ..model.progress import Level
from ..model.situation import Situation
from ..model.story import RunStory
from ..model.verdict_words import verdict_word
from . import quantity
from .state.concerns import AFTER_NAN, doubt_of, saved_after_nan

LEVELS: dict[str, Level] = {
    "complete": "safe",
    "writing": "unknown",
    "torn": "danger",
    "corrupt": "danger",
    "nonfinite": "danger",
    "opaque": "warning",
}


class CheckpointView(msgspec.Struct, frozen=True, kw_only=True):
    """One row. ``resume``: a resume starts from it. ``understood``: as in ``Checkpoint``.

    ``after_nan``: it was saved when the loss was NaN already.
    """

    path: str
    name: str
    step: str
    size: str
    age: str
    verdict: str
    level: Level
    reason: str = ""
    resume: bool = False
    understood: bool = True
    after_nan: bool = False
    score: str = ""
    """``fid 12.3, best``; empty if it was not evaluated."""


def checkpoint_views(now: Situation) -> tuple[CheckpointView, ...]:
    """All checkpoints, newest first."""
    resume = resume_point(now)
    return tuple(_view(c, now, resume) for c in reversed(now.story.checkpoints))


def verdict_clause(verdict: str) -> str:
    """``is torn``, ``holds NaN or Inf``: what follows the name of a checkpoint."""
    return f"{'holds' if verdict == 'nonfinite' else 'is'} {verdict_word(verdict)}"


def how_many(verdicts: Iterable[str], noun: str = "") -> str:
    """``3 complete``, ``2 of 5 complete, 3 unverified``, ``13 unverified``; ``noun`` follows the number of all."""
    found = list(verdicts)
    known, complete, unverified = len(found), found.count("complete"), found.count("opaque")
    of = f" {noun}{'s' * (known != 1)}" if noun else ""
    if not complete and unverified == known:
        return f"{quantity.count(known)}{of} {verdict_word('opaque')}"
    all_ = "" if complete == known else f" of {quantity.count(known)}"
    rest = f", {quantity.count(unverified)} {verdict_word('opaque')}" if unverified else ""
    return f"{quantity.count(complete)}{all_}{of} complete{rest}"


def resume_point(now: Situation) -> Checkpoint | None:
    """The newest checkpoint that a restart may take, complete or opaque, from before a NaN of the loss, or None."""
    story = now.story
    own = (c for c in reversed(story.checkpoints) if story.origin(c) != "unknown")
    finite = (c for c in own if not saved_after_nan(c, story))
    return newest_resumable(finite, story.set_aside)


def steps_since(checkpoint: Checkpoint | None, step: int | None) -> int | None:
    """Steps that a resume from this checkpoint repeats; None = unknown."""
    if step is None:
        return None
    if checkpoint is None:
        return step
    if checkpoint.step is None or checkpoint.step > step:
        return None
    return step - checkpoint.step


def _view(c: Checkpoint, now: Situation, resume: Checkpoint | None) -> CheckpointView:
    aside = now.story.set_aside.get(c.path)
    doubt = doubt_of(c, now.story)
    said = (
        doubt,
        c.reason,
        None if aside is None else f"not used for a restart: {aside.why}",
    )
    return CheckpointView(
        path=c.path,
        name=c.name,
        step=step_words(c),
        size=quantity.size(c.size_bytes),
        age=quantity.age(max(0.0, now.now_wall - c.mtime)),
        verdict=c.verdict,
        level="warning" if doubt and LEVELS[c.verdict] == "safe" else LEVELS[c.verdict],
        reason="; ".join(filter(None, said)),
        resume=resume is not None and resume.path == c.path,
        understood=c.understood,
        after_nan=doubt == AFTER_NAN,
        score=score_of(c, now.story),
    )


def score_of(c: Checkpoint, story: RunStory) -> str:
    """``fid 12.3, best``; ``score unknown``; empty if it was not evaluated."""
    found = story.evaluation(c)
    if found is None:
        return ""
    if found.score is None:
        return "score unknown"
    best = story.best
    return score_words(found) + (", best" if best is not None and best.path == c.path else "")


def scores_of(story: RunStory) -> str:
    """``fid 12.3 at step 300, best 11.8 at step 200``: the newest score, and the best if that is another one.

    Of the checkpoints that are there; empty if none was evaluated.
    """
    known = [(c, e) for c in story.checkpoints if (e := story.evaluation(c)) is not None]
    scored = [(c, e) for c, e in known if e.score is not None]
    if not scored:
        return "score unknown" if known else ""
    (newest, found), best = max(scored, key=lambda each: each[0].mtime), story.best
    text = f"{score_words(found)} at {step_words(newest)}"
    if best is None or best.score is None:
        return text
    if best.path == newest.path:
        return f"{text} (the best)"
    where = next(step_words(c) for c, e in scored if e.path == best.path)
    return f"{text}, best {best.score:.4g} at {where}"


def step_words(c: Checkpoint) -> str:
    """``step 5,880``; ``epoch 3`` if the step is unknown; ``–`` if both are."""
    if c.step is not None:
        return f"step {quantity.count(c.step)}"
    return quantity.UNKNOWN if c.epoch is None else f"epoch {c.epoch}"
