"""Where the time of a run went, and how much of it a perfect supervisor would have saved.

ETTR (effective training time ratio) is the time in which new steps were made over the wall time: start-up, steps that
had to be repeated, detection, restarts and waiting are not in it. Source: Kokolis et al., "Revisiting Reliability in
Large-Scale Machine Learning Research Clusters" (2024).

A perfect supervisor notices a failure at once and restarts at once, from the same checkpoint: it has the same start-ups
and repeats the same steps.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import msgspec

from ...model.fact import NothingSeen
from ...model.run import TERMINAL_STATES, AttemptStory, RunState
from ...model.story import STATES, RunStory

OURS: frozenset[RunState] = frozenset({"stopping", "cleaning", "backing_off"})
"""States in which the trainer is ended and the next attempt prepared."""
HELD = frozenset({*TERMINAL_STATES, "idle", "interrupted", "paused", "suspended", "queued"})
"""States that only a person, or a new supervisor, ends."""


class LostTime(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds. ``redone_s`` None: how long a step takes is unknown. ``waited_s``: for a person.

    ``silent_s``: of a silence that goes on. It is not known yet whether the training works in it. ``frozen_s``: nothing
    was seen of the run, and no steps were made in that time: the machine slept, or all was stopped. ``unknown_s``:
    nothing was or is seen of it, and whether steps were made is not known. ``finished_s``: between a finish and a
    further start, which is not lost.
    """

    wall_s: float
    startup_s: float
    detection_s: float
    restart_s: float
    waited_s: float
    silent_s: float = 0.0
    frozen_s: float = 0.0
    unknown_s: float = 0.0
    finished_s: float = 0.0
    redone_s: float | None

    @property
    def lost_s(self) -> float:
        """What is known to be lost; a silence that goes on may be none."""
        held_s = self.waited_s + self.frozen_s
        return self.startup_s + self.detection_s + self.restart_s + held_s + (self.redone_s or 0.0)

    @property
    def trained_s(self) -> float | None:
        """The time in which new steps were made."""
        if self.redone_s is None:
            return None
        return max(0.0, self.wall_s - self.finished_s - self.lost_s - self.silent_s - self.unknown_s)

    @property
    def ettr(self) -> float | None:
        """Time in which new steps were made over wall time, 0..1; None = unknown."""
        due_s = self.wall_s - self.finished_s
        return None if self.trained_s is None or due_s <= 0 else min(1.0, self.trained_s / due_s)

    @property
    def of_perfect(self) -> float | None:
        """The wall time of a perfect supervisor over this one's, 0..1; waiting for a person is left out of both.

        So is what no supervisor can change or tell: a machine that sleeps.
        """
        own_s = self.wall_s - self.finished_s - self.waited_s - self.frozen_s - self.unknown_s
        return None if own_s <= 0 else max(0.0, own_s - self.detection_s - self.restart_s) / own_s


def lost_time(
    story: RunStory,
    now_t: float,
    redone_steps: int | None = None,
    *,
    since_t: float = 0.0,
    silent_from_t: float | None = None,
    unseen_from_t: float | None = None,
) -> LostTime | None:
    """None before the first launch, and if the journal has no state or too many. ``redone_steps``: if known better.

    ``since_t``: run seconds before which nothing counts. ``silent_from_t``: since when no step came although one was
    due, also before that is an incident; None: not known. ``unseen_from_t``: since when nobody watches; None: somebody
    does.
    """
    if not story.attempts or not story.states or len(story.states) >= STATES:
        return None
    begin_t = max(story.attempts[0].t, since_t)
    end_t = story.state_t if story.state in TERMINAL_STATES or story.state == "interrupted" else max(now_t, story.t)
    sums: dict[str, float] = dict.fromkeys(
        ("running", "startup", "detection", "restart", "waited", "silent", "frozen", "unknown", "finished"), 0.0
    )
    gaps = list(story.unseen)
    if unseen_from_t is not None:
        gaps.append(NothingSeen(since_t=unseen_from_t, until_t=end_t))
    quiet = (i.t - (i.detect_s or 0.0) for i in story.open_incidents if i.kind == "quiet")
    silent_t = min(*quiet, math.inf, math.inf if silent_from_t is None else silent_from_t)
    for from_t, until_t, what in _parts(story, begin_t, end_t, silent_t):
        lasted_s = max(0.0, until_t - from_t)
        if what in {"running", "startup", "silent"}:
            for why, seconds in _not_seen(gaps, from_t, until_t):
                sums[why] += seconds
                lasted_s -= seconds
        sums[what] += lasted_s
    steps = steps_redone(story) if redone_steps is None else redone_steps
    pace_s = story.progress.sec_per_step
    redone_s = 0.0 if steps == 0 else None if pace_s is None else min(sums["running"], steps * pace_s)
    spent = {f"{what}_s": seconds for what, seconds in sums.items() if what != "running"}
    return LostTime(wall_s=max(0.0, end_t - begin_t), redone_s=redone_s, **spent)


def last_step_of(attempt: AttemptStory, log_steps: Mapping[int, int] = {}) -> int | None:
    """As the trainer counts. ``log_steps``: attempt → the last step in its log, if no supervisor watched its end."""
    return attempt.last_step if attempt.last_step is not None else log_steps.get(attempt.number)


def steps_redone(story: RunStory, log_steps: Mapping[int, int] = {}) -> int:
    """Steps that were repeated: after a crash or a hang, which its incident tells, and on request.

    On request: after a stop between two saves, or by a resume from an older checkpoint.
    """
    told = {i.attempt for i in story.incidents if i.lost_steps is not None}
    total = sum(i.lost_steps or 0 for i in story.incidents)
    for a, b in pairwise(story.attempts):
        last = last_step_of(a, log_steps)
        if a.number not in told and last is not None and not b.may_take:
            resumed = b.resume_step if b.resume_from is not None else 0
            total += max(0, last - resumed) if resumed is not None else 0
    return total


def _parts(story: RunStory, begin_t: float, end_t: float, silent_t: float) -> Iterator[tuple[float, float, str]]:
    """The time from the first launch to the end: from, until, where it went. ``silent_t``: no step came since then."""
    ends = [span.t for span in story.states[1:]]
    unnoticed_s: dict[float, float] = {}
    for i in story.incidents:
        if i.kind in {"crash", "hang"}:  # how long it had lasted when it was noticed
            unnoticed_s[i.t] = max(unnoticed_s.get(i.t, 0.0), i.detect_s or 0.0)
    for span, next_t in zip(story.states, [*ends, end_t], strict=True):
        since_t, until_t = max(span.t, begin_t), min(next_t, end_t)
        if until_t <= since_t:
            continue
        if span.state in OURS:
            yield since_t, until_t, "restart"
        elif span.state in HELD:
            yield since_t, until_t, "finished" if span.state == "finished" else "waited"
        elif span.state == "hung":
            asked = (w.t for w in story.withheld if since_t <= w.t <= until_t and w.fact.waits and not w.fact.by)
            asked_t = min(asked, default=until_t)
            yield since_t, asked_t, "detection"
            yield asked_t, until_t, "waited"
        else:
            noticed_t = min(until_t, max(since_t, until_t - unnoticed_s.get(until_t, 0.0)))
            stepped_t = max(since_t, min(noticed_t, silent_t)) if until_t == end_t else noticed_t
            yield since_t, stepped_t, "startup" if span.state == "starting" else "running"
            yield stepped_t, noticed_t, "silent"
            yield noticed_t, until_t, "detection"


def _not_seen(gaps: Sequence[NothingSeen], from_t: float, until_t: float) -> Iterator[tuple[str, float]]:
    """What of a time was not seen and not used by the training: why, and how long. Steps count from its beginning."""
    for gap in gaps:
        seconds = min(gap.until_t, until_t) - max(gap.since_t, from_t)
        if seconds > 0.0:
            yield ("unknown", seconds) if gap.trained_s is None else ("frozen", max(0.0, seconds - gap.trained_s))
