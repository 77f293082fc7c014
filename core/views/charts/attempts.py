"""Attempts on the x axis: one after another or over each other, by time or by step."""

import itertools
import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

import msgspec

from ...model.ports.screen import Point
from ...model.run import HALTED_STATES
from ...model.story import RunStory
from ..state.concerns import SILENT

Stretch = tuple[float, float]
"""(since, until) in run seconds."""


class AttemptSpan(msgspec.Struct, frozen=True):
    """An attempt from its launch to its end, or to the next launch, or to now. Run seconds.

    ``ended``: it is over, so nothing trains until the next launch. ``still``: stretches without steps after which it
    went on, paused or silent.
    """

    number: int
    since_t: float
    until_t: float
    ended: bool = False
    still: tuple[Stretch, ...] = ()


def attempt_spans(story: RunStory, now_t: float) -> tuple[AttemptSpan, ...]:
    """All attempts, oldest first."""
    starts = [a.t for a in story.attempts]
    stills = tuple(_stills(story))
    found = []
    for attempt, next_t in itertools.zip_longest(story.attempts, starts[1:], fillvalue=max(now_t, story.t)):
        assert not isinstance(attempt, float)
        end_t = next_t if attempt.ended_t is None else min(attempt.ended_t, next_t)
        ended = attempt.ended_t is not None or attempt is not story.attempts[-1]
        until_t = max(end_t, attempt.t)
        still = tuple((since, until) for since, until in stills if since >= attempt.t and until <= until_t)
        found.append(AttemptSpan(attempt.number, attempt.t, until_t, ended, still))
    return tuple(found)


def _stills(story: RunStory) -> Iterator[Stretch]:
    """When a run was paused or silent, from the last step on, if that is over."""
    for span, after in itertools.pairwise(story.states):
        if span.state in HALTED_STATES:
            yield span.t, after.t
    for incident in story.incidents:
        if incident.kind in SILENT and incident.closed_t is not None:
            yield incident.t - (incident.detect_s or 0.0), incident.closed_t


def within(points: Sequence[Point], span: AttemptSpan) -> tuple[Point, ...]:
    """The points of an attempt."""
    first, last = bisect_left(points, span.since_t, key=_x), bisect_right(points, span.until_t, key=_x)
    return tuple(points[first:last])


def last_step_t(steps: Sequence[Point]) -> float | None:
    """When the newest step of an attempt was seen: the first of the points with its highest step. None without any."""
    if not steps:
        return None
    highest = max(p[3] for p in steps)
    return next(p[0] for p in steps if p[3] >= highest)


def without_stills(points: Sequence[Point], span: AttemptSpan) -> list[tuple[Point, ...]]:
    """The points of an attempt in parts: none in a stretch without steps, where the last value was only repeated."""
    parts: list[tuple[Point, ...]] = [tuple(points)]
    for since, until in sorted(span.still):
        last = parts.pop()
        parts += [last[: bisect_right(last, since, key=_x)], last[bisect_left(last, until, key=_x) :]]
    return [part for part in parts if part]


def until_last_step(points: Sequence[Point], steps: Sequence[Point]) -> tuple[Point, ...]:
    """Without the repetitions of the last value after the last step. ``steps``: of the same attempt."""
    last_t = last_step_t(steps)
    if last_t is None:
        return tuple(points)
    return tuple(points[: bisect_right(points, last_t, key=_x)])


class StepOf:
    """The step at a time of one attempt, between its points interpolated; None before its first and after its last."""

    def __init__(self, steps: Sequence[Point]) -> None:
        last_t = last_step_t(steps)
        known = [p for p in steps if last_t is not None and p[0] <= last_t]
        self._times = [p[0] for p in known]
        self._steps = list(itertools.accumulate((p[2] for p in known), max))
        if self._steps:
            self._steps[-1] = max(self._steps[-1], known[-1][3])

    def __call__(self, t: float, slack_s: float = 0.0) -> float | None:
        """``slack_s``: how far outside a time gets the first or last step."""
        times, steps = self._times, self._steps
        if not times or not times[0] - slack_s <= t <= times[-1] + slack_s:
            return None
        at = bisect_right(times, t)
        if at == 0:
            return steps[0]
        if at == len(times):
            return steps[-1]
        share = (t - times[at - 1]) / (times[at] - times[at - 1])
        return steps[at - 1] + share * (steps[at] - steps[at - 1])

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The first and the last step."""
        return (self._steps[0], self._steps[-1]) if self._steps else None


def by_step(points: Sequence[Point], step_of: StepOf) -> tuple[Point, ...]:
    """The points of an attempt at their steps; those that belong to no step are left out."""
    found = []
    newest = -math.inf
    for t, low, mean, high in points:
        step = step_of(t)
        if step is not None and step >= newest:
            found.append((step, low, mean, high))
            newest = step
    return tuple(found)


def joined(parts: Sequence[Sequence[Point]]) -> tuple[Point, ...]:
    """Attempts by step as one curve: from where a later one begins, it replaces the earlier ones."""
    found: list[Point] = []
    for part in parts:
        if part:
            del found[bisect_left(found, part[0][0], key=_x) :]
            found += part
    return tuple(found)


def shifted(points: Sequence[Point], by: float) -> tuple[Point, ...]:
    """The same points, ``by`` less in x."""
    return tuple((x - by, low, mean, high) for x, low, mean, high in points)


def silences(
    steps: Sequence[tuple[float, float | None]], attempts: Sequence[AttemptSpan], still_since_t: float | None = None
) -> tuple[Stretch, ...]:
    """The stretches without steps: paused, silent, and between the last step of an attempt and the next launch.

    ``until`` is infinite if there is no next one yet. ``steps``: (run seconds, step) on a grid; without any step of an
    attempt its end counts. ``still_since_t``: when the newest step of the newest attempt was seen, if no further one
    came when it was due; None = it goes on.
    """
    found: list[Stretch] = []
    for attempt, after in itertools.zip_longest(attempts, attempts[1:]):
        assert attempt is not None, "there are fewer next ones"
        if after is None and not attempt.ended:
            continue
        part = [(t, s) for t, s in steps if s is not None and attempt.since_t <= t <= attempt.until_t]
        highest = max((s for _, s in part), default=0.0)
        last_t = next((t for t, s in part if s >= highest), attempt.until_t)
        found.append((last_t, math.inf if after is None else after.since_t))
    if still_since_t is not None and attempts and still_since_t >= attempts[-1].since_t:
        if attempts[-1].ended:
            still_since_t = min(still_since_t, found.pop()[0])
        found.append((still_since_t, math.inf))
    found += [still for attempt in attempts for still in attempt.still]
    return tuple((since, until) for since, until in found if until > since)


def _x(point: Point) -> float:
    return point[0]
