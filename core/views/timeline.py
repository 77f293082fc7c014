"""The timeline: one time axis of the whole run with its events, and the charts that share the axis."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Literal, get_args

import msgspec

from ..model.checkpoint import DAMAGED, Checkpoint
from ..model.run import HALTED_STATES, TERMINAL_STATES
from ..model.story import Situation
from ..model.text import verdict_in_words
from . import quantity
from .charts import SPANS_S, AttemptSpan, attempt_spans
from .checkpoint_list import score_of, scores_of, step_words
from .state.concerns import DOUBTS, NAN, doubts_in, nan_since
from .state.run_progress import last_step, live_progress

MarkKind = Literal[
    "start", "checkpoint", "doubtful_checkpoint", "bad_checkpoint", "profile", "restart", "incident", "danger", "hang",
    "crash",
]  # fmt: skip
RANK: dict[MarkKind, int] = {kind: rank for rank, kind in enumerate(get_args(MarkKind))}
"""Order of the marks: which one is drawn if two are in the same column."""
MARK_WORDS: dict[MarkKind, str] = {
    "doubtful_checkpoint": "checkpoint", "bad_checkpoint": "damaged checkpoint", "danger": "incident",
}  # fmt: skip
"""Of those whose word is another one than their kind."""
INCIDENT_MARKS: dict[str, MarkKind] = {"crash": "crash", "hang": "hang"}
TICK_LEAST_S = 10
FUTURE_SHARE = 0.3
"""Largest share of the axis for the time until the expected end: the past must stay readable."""
STUB_SHARE = 0.05
"""Share of the axis for the future if the end is farther away; its time of day is written there."""
SHORTEST_S = 60.0
GROWTH = ((3600.0, 1.03), (600.0, 1.1), (0.0, 1.25))
"""(length of the axis in seconds, by how much it grows at once), longest first."""


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened at ``t`` run seconds."""

    t: float
    kind: MarkKind
    text: str = ""


class Band(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch of one phase, or of no trainer at all (phase ``none``)."""

    since_t: float
    until_t: float
    phase: str


class TimelineView(msgspec.Struct, frozen=True, kw_only=True):
    """Times in run seconds. ``end_t`` of the axis; ``done_t``: the end, or the expected end, if it is on the axis.

    ``later``: time of day of the expected end if it is not. ``steps_until_t``: when the newest step was seen, if no
    further one came when it was due: curves end there. ``attempts``: since when until when each ran.
    """

    end_t: float
    now_t: float
    over: bool
    done_t: float | None
    marks: tuple[Mark, ...] = ()
    expected: tuple[float, ...] = ()
    bands: tuple[Band, ...] = ()
    title: str = ""
    loss: str = quantity.UNKNOWN
    sec_per_step: float | None = None
    wall0: float = 0.0
    later: str = ""
    attempts: tuple[AttemptSpan, ...] = ()
    steps_until_t: float | None = None
    message: str | None = None


def timeline_view(now: Situation) -> TimelineView:
    story = now.story
    over = story.state in TERMINAL_STATES
    now_t = story.state_t if over else max(now.now_t, story.t)
    progress = live_progress(now)
    late = _stands_still(now)
    eta_s = None if over or late or not story.attempts else progress.eta_s
    span = max(now_t, SHORTEST_S)
    end_t = span
    if not over:
        fits = eta_s is not None and eta_s <= span * FUTURE_SHARE / (1 - FUTURE_SHARE)
        end_t = _calm(span + (eta_s * 1.02 if fits and eta_s is not None else span * STUB_SHARE))
    done_t = now_t if story.state == "finished" else (now_t + eta_s if eta_s is not None else None)
    later = ""
    if done_t is not None and done_t > end_t:
        later, done_t = quantity.clock(story.wall0 + done_t, now.now_wall), None
    is_nan = any(i.class_ in NAN for i in story.open_incidents) or nan_since(story) is not None
    no_loss = "NaN" if is_nan else quantity.UNKNOWN
    return TimelineView(
        end_t=end_t,
        now_t=now_t,
        over=over,
        done_t=done_t,
        marks=_marks(now),
        expected=_expected(now, now_t, done_t if done_t is not None else end_t) if not over else (),
        bands=tuple(_bands(now, now_t if now.watched or over else min(now_t, max(story.t, now.progress_t)))),
        title=_title(now),
        loss=no_loss if progress.loss is None else quantity.three_digits(progress.loss),
        sec_per_step=progress.sec_per_step,
        later=later,
        attempts=attempt_spans(story, now_t),
        wall0=story.wall0,
        steps_until_t=now.step_t if late and now.watched else None,
        message=None if story.attempts else "Nothing has happened yet",
    )


def events(view: TimelineView) -> tuple[Mark, ...]:
    """All events in the order of time, for the cursor."""
    return tuple(sorted(view.marks, key=lambda m: (m.t, RANK[m.kind])))


def event_words(view: TimelineView, mark: Mark) -> str:
    """00:57:48 · crash · exit code 1: CUDA out of memory."""
    at = quantity.clock(view.wall0 + mark.t, view.wall0 + view.now_t, seconds=True)
    text = f" · {mark.text}" if mark.text else ""
    return f"{at} · {MARK_WORDS.get(mark.kind, mark.kind)}{text}"


def ticks(
    view: TimelineView, columns: int, apart: int = 10, axis: tuple[float, float] | None = None
) -> tuple[tuple[float, str], ...]:
    """(run seconds, label) of round times of day, so that labels are at least ``apart`` columns apart.

    ``axis``: (since, until) run seconds; None = all of the view.
    """
    since_t, until_t = axis or (0.0, view.end_t)
    if columns < apart or until_t <= since_t:
        return ()
    needed_s = max(TICK_LEAST_S, (until_t - since_t) / columns * apart)
    step_s = next((s for s in SPANS_S if s >= needed_s), SPANS_S[-1])
    form = "%H:%M:%S" if step_s < quantity.MINUTE_S else "%a %d" if step_s >= quantity.DAY_S else "%H:%M"
    begin = datetime.fromtimestamp(view.wall0).astimezone()
    midnight = begin.replace(hour=0, minute=0, second=0, microsecond=0)
    t = since_t + ((midnight - begin).total_seconds() - since_t) % step_s
    found: list[tuple[float, str]] = []
    while t <= until_t:
        found.append((t, (begin + timedelta(seconds=t)).strftime(form)))
        t += step_s
    return tuple(found)


def _calm(span_s: float) -> float:
    """Round up on a grid, so that the axis does not move with every change of the ETA."""
    grid = SHORTEST_S
    while grid < span_s:
        grid *= next((share for least_s, share in GROWTH if grid >= least_s))
    return grid


def _marks(now: Situation) -> tuple[Mark, ...]:
    story = now.story
    marks = [
        Mark(t=a.t, kind="start" if a.number == 1 else "restart", text=f"attempt {a.number}") for a in story.attempts
    ]
    doubt_of = doubts_in(story)
    for c in story.checkpoints:
        bad, doubt = c.verdict in DAMAGED and c.understood, DOUBTS[doubt_of(c)]
        kind: MarkKind = "bad_checkpoint" if bad else "doubtful_checkpoint" if doubt else "checkpoint"
        text = " · ".join(filter(None, (step_words(c), score_of(c, story), doubt)))
        marks.append(Mark(t=checkpoint_t(now, c), kind=kind, text=text))
    marks += [
        Mark(t=i.t, kind=INCIDENT_MARKS.get(i.kind, "danger" if i.severity == "danger" else "incident"), text=i.reason)
        for i in story.incidents
        if i.severity != "info"
    ]
    marks += [Mark(t=s.t, kind="profile", text=s.fact.profile or "") for s in story.profile_switches]
    return tuple(sorted((m for m in marks if m.t >= 0), key=lambda m: (RANK[m.kind], m.t)))


def checkpoint_t(now: Situation, c: Checkpoint) -> float:
    """When it was written, in run seconds; for one from before the run, when it became known."""
    t = c.mtime - now.story.wall0
    return t if t >= 0 else now.story.checkpoint_times.get(c.path, 0.0)


STANDING = HALTED_STATES | {"hung", "backing_off", "cleaning"}


def _stands_still(now: Situation) -> bool:
    """No step came when it was due, nobody looks, or the run's state has no steps: nothing is promised then."""
    step = last_step(now)
    return not now.watched or now.story.state in STANDING or (step is not None and step.level != "safe")


def _expected(now: Situation, now_t: float, until_t: float) -> tuple[float, ...]:
    """Expected times of the next checkpoints: the usual distance of the newest ones of this attempt."""
    attempt = now.story.attempt
    if attempt is None or attempt.ended_t is not None or _stands_still(now):
        return ()
    from statistics import median  # slow to import, and not needed for the first screen

    times = [t for t in (checkpoint_t(now, c) for c in now.story.checkpoints) if t > 0]
    gaps = [b - a for a, b in pairwise(times) if b > a]
    if not gaps:
        return ()
    usual_s = median(gaps[-8:])
    if usual_s <= 0 or (until_t - now_t) / usual_s > 200:
        return ()
    t = times[-1] + usual_s
    while t < now_t:
        t += usual_s
    found = []
    while t < until_t:
        found.append(t)
        t += usual_s
    return tuple(found)


def _bands(now: Situation, now_t: float) -> Iterator[Band]:
    for attempt in attempt_spans(now.story, now_t, until_t=now_t):
        spans = [s for s in now.story.phases if s.fact.attempt == attempt.number and s.t > attempt.since_t]
        cuts = [(attempt.since_t, "load"), *((s.t, s.fact.phase) for s in spans), (attempt.until_t, "")]
        for (since_t, phase), (until_t, _) in pairwise(cuts):
            if min(until_t, attempt.until_t) > since_t:
                yield Band(since_t=since_t, until_t=min(until_t, attempt.until_t), phase=phase)


def _title(now: Situation) -> str:
    """checkpoint 18 min ago · step 5,880 · 870 MB · complete."""
    story = now.story
    if not story.checkpoints:
        return "no checkpoint yet" if story.attempts else ""
    c = story.checkpoints[-1]
    age = quantity.age(max(0.0, now.now_wall - c.mtime))
    judged = DOUBTS[doubts_in(story)(c)] or verdict_in_words(c.verdict)
    what = (f"checkpoint {age}", step_words(c), quantity.size(c.size_bytes), judged, scores_of(story))
    return " · ".join(filter(None, what))
