"""Checkpoints of a run as a list, and its resume point."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from ..model.checkpoint import DAMAGED, Checkpoint, Evaluation, Sample, newest_usable, score_words
from ..model.progress import Level
from ..model.story import RunStory, Situation, lacks_place, ways_on
from ..model.text import typed, verdict_word
from . import quantity
from .state.concerns import DOUBTS, Doubt, barred, doubts_in

LEVELS: dict[str, Level] = {
    "complete": "safe",
    "writing": "unknown",
    "torn": "danger",
    "corrupt": "danger",
    "nonfinite": "danger",
    "opaque": "warning",
}


NAN_WHEN_SAVED = "loss was NaN"
"""In the column of verdicts."""


class Verification(msgspec.Struct, frozen=True, kw_only=True):
    """A verification made while the screen is open. ``wall`` epoch seconds."""

    checkpoint: Checkpoint
    deep: bool
    wall: float


class CheckpointRow(msgspec.Struct, frozen=True, kw_only=True):
    """One checkpoint of the list. ``judged``: with the newest verdict; ``resume``: a resume starts from it."""

    judged: Checkpoint
    now_wall: float
    resume: bool = False
    verification: Verification | None = None
    aside: str = ""
    """Why no restart takes it, if a person or an end said so."""
    doubt: Doubt | None = None
    evaluation: Evaluation | None = None
    best: bool = False
    """No other one has a better score."""

    @property
    def path(self) -> str:
        return self.judged.path

    @property
    def name(self) -> str:
        return self.judged.name

    @property
    def verdict(self) -> str:
        """``complete``, ``torn`` and so on."""
        return self.judged.verdict

    @property
    def word(self) -> str:
        """The verdict as people read it; of a whole file that was saved when the loss was NaN, that."""
        return NAN_WHEN_SAVED if self.spoiled else verdict_word(self.verdict)

    @property
    def spoiled(self) -> bool:
        """As a file it is complete, and the loss was NaN when it was saved."""
        return self.after_nan and self.verdict == "complete"

    @property
    def after_nan(self) -> bool:
        """The loss was NaN when it was saved."""
        return self.doubt == "nan"

    @property
    def level(self) -> Level:
        """The level of its verdict; no complete one is safe if the loss was NaN."""
        level = LEVELS[self.judged.verdict]
        return "warning" if self.doubt and level == "safe" else level

    @property
    def why(self) -> str:
        """Its doubt, unless ``word`` says it, the reason of its verdict, and why no restart takes it."""
        aside = f"not used for a restart: {self.aside}" if self.aside else ""
        return "; ".join(filter(None, ("" if self.spoiled else DOUBTS[self.doubt], self.judged.reason, aside)))

    @property
    def step(self) -> str:
        return step_words(self.judged)

    @property
    def size(self) -> str:
        return quantity.size(self.judged.size_bytes)

    @property
    def age(self) -> str:
        """When it was written, for example ``18 min ago``."""
        return quantity.age(max(0.0, self.now_wall - self.judged.mtime))

    @property
    def score(self) -> str:
        """``fid 12.3, best``; ``score unknown``; empty if it was not evaluated."""
        return _score(self.evaluation, best=self.best)

    @property
    def verified(self) -> str:
        """How it was verified while the screen is open; empty if it was not."""
        if self.verification is None:
            return ""
        how = "every byte read" if self.verification.deep else "structure checked"
        return f"{how} {quantity.clock(self.verification.wall, self.now_wall)}"


def checkpoint_views(now: Situation) -> tuple[CheckpointRow, ...]:
    """All checkpoints of the journal, newest first."""
    return checkpoint_rows(tuple(reversed(now.story.checkpoints)), {}, now.now_wall, now.story)


def checkpoint_rows(
    checkpoints: Sequence[Checkpoint], verifications: Mapping[str, Verification], now_wall: float, story: RunStory
) -> tuple[CheckpointRow, ...]:
    """Newest first, as given. A verification counts while the checkpoint is unchanged since.

    So does the damage that the run's journal knows of, unless all of the file was read again since.
    """
    damage = {_same(k): k for k in reversed(story.checkpoints) if k.verdict in DAMAGED}
    judged: list[tuple[Checkpoint, Verification | None]] = []
    for known in checkpoints:
        v, c = verifications.get(known.path), known
        v = v if v is not None and _same(v.checkpoint) == _same(known) else None
        c = known if v is None else v.checkpoint
        worse = damage.get(_same(c))
        if worse is not None and c.verdict not in DAMAGED and not (v is not None and v.deep):
            found = {name: getattr(worse, name) for name in ("verdict", "reason", "nonfinite", "nan")}
            c = msgspec.structs.replace(c, **found)
        judged.append((c, v))
    doubt_of = doubts_in(story)
    doubts = {c.path: doubt_of(c) for c, _ in judged}
    bars = barred(story)
    own = [c for c, _ in judged if story.origin(c) != "unknown" and doubts[c.path] not in bars]
    resume = newest_usable(own, story.set_aside)
    best, aside = story.best, story.set_aside
    return tuple(
        CheckpointRow(
            judged=c,
            now_wall=now_wall,
            resume=c is resume,
            verification=v,
            aside=aside[c.path].why if c.path in aside else "",
            doubt=doubts[c.path],
            evaluation=story.evaluation(c),
            best=best is not None and best.path == c.path,
        )
        for c, v in judged
    )


def _same(c: Checkpoint) -> tuple[str, float, int]:
    """What is equal of one that was not written again."""
    return c.path, c.mtime, c.size_bytes


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
    return _newest(now.story, barred(now.story))


def point_before(story: RunStory) -> Checkpoint | None:
    """The same, also from before a divergence that the settings leave to a person."""
    return _newest(story, frozenset({"nan", "diverged"}))


def _newest(story: RunStory, bars: frozenset[Doubt]) -> Checkpoint | None:
    doubt_of = doubts_in(story)
    own = (c for c in reversed(story.checkpoints) if story.origin(c) != "unknown" and doubt_of(c) not in bars)
    return newest_usable(own, story.set_aside)


def how_to_resume(story: RunStory, run: tuple[str, ...]) -> str:
    """The command that goes on with a run that is over; all of them if ``resume`` alone is refused."""
    finished = story.state == "finished"
    if lacks_place(story):
        return ways_on(run, finished=finished)
    point, newest = point_before(story), _newest(story, frozenset())
    doubt = "" if newest is None else DOUBTS[doubts_in(story)(newest)].removeprefix("saved after ")
    if doubt and point is not None:
        return f"`{typed('resume', *run, '--from', point.path)}` goes back to before {doubt}"
    if doubt:
        return f"`{typed('resume', *run, '--fresh')}` begins anew: nothing was saved before {doubt}"
    longer = f"`{typed('resume', *run, '--from', 'newest')}` trains on, if it is told to train longer"
    return longer if finished else f"`{typed('resume', *run)}`"


def steps_since(checkpoint: Checkpoint | None, step: int | None) -> int | None:
    """Steps that a resume from this checkpoint repeats; None = unknown."""
    if step is None:
        return None
    if checkpoint is None:
        return step
    if checkpoint.step is None or checkpoint.step > step:
        return None
    return step - checkpoint.step


def score_of(c: Checkpoint, story: RunStory) -> str:
    """As in a row of the list."""
    return _score(story.evaluation(c), best=story.best is not None and story.best.path == c.path)


def _score(found: Evaluation | None, *, best: bool) -> str:
    if found is None or found.score is None:
        return "" if found is None else "score unknown"
    return score_words(found) + (", best" if best else "")


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


def step_words(c: Checkpoint | Sample, unknown: str = quantity.UNKNOWN) -> str:
    """``step 5,880``; ``epoch 3`` if the step is unknown; ``unknown`` if both are."""
    if c.step is not None:
        return f"step {quantity.count(c.step)}"
    return unknown if c.epoch is None else f"epoch {c.epoch}"
