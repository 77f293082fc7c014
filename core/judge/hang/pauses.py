"""Whether the trainer was stopped by a signal that is not ours (state T), and how much of it.

A pause is a stop of every computing process: time does not count until it is continued. One stopped rank of several
leaves the others waiting for it: a hang. A stopped helper is neither. Sources: a trainer stopped with ``kill -STOP`` or
Ctrl-Z that was shown as running for 18 minutes; a stopped ``sleep`` in the tree that switched hang detection off.

Which processes compute is known from the sensor. Without that (a recorded trace), processes that were stopped while
steps were made count for nothing; of the others one is taken for the whole trainer unless something else still works.
"""

from typing import Literal

import msgspec

from ...model.observation import Outcome, ProcessSample, Rank
from ...model.progress import Phase
from ...model.run import PhaseHabit
from ..scales import LASTS_S
from .activity import NEWEST_WEIGHT

# How long the phases of a run take, and how long they show no sign of life, learned as each phase ends by itself.
#
# Kept apart for each phase: an evaluation of twenty minutes does not show how long a save takes. Words of a dead
# trainer (a watchdog's "saving before abort") teach nothing. Source: learned time-outs by section (NVIDIA's resiliency
# extension). Known false alarms: the first time of a phase, of which nothing is known yet.

UNSEEN = PhaseHabit()


class PhaseTimes(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``runs``: earlier runs of this command. ``start``: from launch to first step. ``phases``: those that ended."""

    runs: int = 0
    start: PhaseHabit = UNSEEN
    phases: dict[Phase, PhaseHabit] = {}


def learned(times: PhaseTimes, phase: Phase | None, lasted_s: float, quiet_s: float) -> PhaseTimes:
    """Learn from a phase that ended, or with None from a start: an attempt made its first step.

    ``quiet_s``: longest silence since the last step, in seconds.
    """
    known = times.start if phase is None else habit(times, phase)
    new = merged(known, PhaseHabit(times=known.times + 1, longest_s=lasted_s, quiet_s=min(quiet_s, lasted_s)))
    if phase is None:
        return msgspec.structs.replace(times, start=new)
    return msgspec.structs.replace(times, phases={**times.phases, phase: new})


def habit(times: PhaseTimes, phase: Phase) -> PhaseHabit:
    return times.phases.get(phase, UNSEEN)


def merged(one: PhaseHabit, other: PhaseHabit) -> PhaseHabit:
    return PhaseHabit(
        times=max(one.times, other.times),
        longest_s=max(one.longest_s, other.longest_s),
        quiet_s=max(one.quiet_s, other.quiet_s),
    )


Stopped = Literal["none", "part", "all"]


class Pause(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``stopped``: how much of the trainer is; ``since_t``: from when, in run seconds.

    ``count``: processes in state T now; ``harmless``: as many were stopped while steps were made. ``stepped``: a step
    was made after the stop, not just read late; if the next sample still shows it, what is stopped is not needed for
    training. ``ranks``: those in state T, if the run has several.
    """

    stopped: Stopped = "none"
    since_t: float | None = None
    count: int = 0
    harmless: int = 0
    ranks: tuple[Rank, ...] = ()
    stepped: bool = False
    sure: bool = False
    """It is known which processes compute."""


def with_process(pause: Pause, sample: ProcessSample, t: float, *, others_work: bool = False) -> Pause:
    """Take a sample of the process tree at ``t`` (run seconds). ``others_work``: a GPU or a core of the run is busy."""
    count = sample.states.get("T", 0)
    if count == 0 and pause.count == 0:
        return pause
    harmless = count if pause.stepped and count >= pause.count else min(pause.harmless, count)
    stopped: Stopped = "none" if count <= harmless else _stopped(sample, count - harmless, others_work=others_work)
    since_t = None if stopped == "none" else t if pause.since_t is None else pause.since_t
    held = () if stopped == "none" else [rank for rank in sample.ranks if rank.state == "T"]
    ranks = tuple(Rank(rank=each.rank, pid=each.pid, state="T", node=each.node) for each in held)
    sure = bool(sample.computing) and sample.held is not None
    return Pause(stopped=stopped, since_t=since_t, count=count, harmless=harmless, ranks=ranks, sure=sure)


def _stopped(sample: ProcessSample, count: int, *, others_work: bool) -> Stopped:
    if sample.computing is not None and sample.held is not None and sample.computing > 0:
        if sample.held == 0:
            return "none"
        return "all" if sample.held >= sample.computing else "part"
    living = sum(sample.states.values()) - sample.states.get("Z", 0)
    return "part" if others_work and count < living else "all"


def with_step(pause: Pause, t: float) -> Pause:
    if pause.since_t is None or pause.stepped or t - pause.since_t < LASTS_S:
        return pause
    return msgspec.structs.replace(pause, stepped=True)


# Run time without the time in which nothing could be seen: suspends of the machine and stops by a person.
#
# Deadlines run on *active* time. A jump between two observations far beyond the usual sampling period is a suspend
# (laptop lid, WSL2 standby, a stopped supervisor). Source: public reports of runs that were killed on wake-up. Known
# false alarms: none; a jump that was no suspend only lengthens a deadline.

JUMP_FLOOR_S = 40.0
"""A shorter gap between samples is no suspend: machines that swap have them while a trainer hangs."""
JUMP_PERIODS = 8.0
"""x the usual sampling period: a shorter gap is no suspend, but a few samples that were lost."""
SAME_ROUND_S = 0.3
"""Samples of different kinds closer than this belong to one round."""


class Unseen(msgspec.Struct, frozen=True, kw_only=True):
    """A time in which nothing was seen, in run seconds; position and seconds of a step before it, None = not known.

    ``known_t``: when that position was seen: before ``since_t``, if it is that of an older state of the judge.
    """

    since_t: float
    until_t: float
    known_t: float
    position: int | None = None
    step_s: float | None = None


class ActiveTime(msgspec.Struct, frozen=True, kw_only=True):
    """The clock of a run, in run seconds.

    ``t``: time of the newest observation. ``away_s``: time left out so far. ``sample_t``: newest round of samples.
    ``period_s``: usual distance of rounds; None before two were seen. ``unseen``: until the steps made in it are read.
    """

    t: float = 0.0
    away_s: float = 0.0
    sample_t: float | None = None
    period_s: float | None = None
    unseen: Unseen | None = None
    stopped: bool = False
    """Every computing process is stopped (state T): time does not count."""

    @property
    def now(self) -> float:
        return self.t - self.away_s


def longest_gap(period_s: float | None) -> float:
    """Return the longest distance between observations, in seconds, that is not yet a suspend."""
    return max(JUMP_FLOOR_S, JUMP_PERIODS * (period_s or 0.0))


def advance(time: ActiveTime, t: float) -> tuple[ActiveTime, float]:
    """Move to ``t``; an earlier time is taken as now. Returns the seconds of a suspend too, 0.0 for none."""
    gap = t - time.t
    if gap <= 0.0:
        return time, 0.0
    if time.stopped:
        return msgspec.structs.replace(time, t=t, away_s=time.away_s + gap), 0.0
    if gap <= JUMP_FLOOR_S or gap <= longest_gap(time.period_s):
        return msgspec.structs.replace(time, t=t), 0.0
    lost_s = gap - (time.period_s or 0.0)
    return msgspec.structs.replace(time, t=t, away_s=time.away_s + lost_s, sample_t=None), lost_s


def sampled(time: ActiveTime) -> ActiveTime:
    """Learn the usual period from a round of samples. Several samples of one round count once."""
    last, now = time.sample_t, time.t
    if last is None:
        return msgspec.structs.replace(time, sample_t=now)
    gap = now - last
    if gap < SAME_ROUND_S:
        return time
    period = time.period_s
    learned = gap if period is None else period + NEWEST_WEIGHT * (gap - period)
    return msgspec.structs.replace(time, sample_t=now, period_s=learned)


# Whether all that is busy in a run without steps is in loops that change nothing, or waits for a GPU at rest.
#
# No reading tells a core that computes from one that loops. A look (core/act/evidence/loop_looks.py) does: several
# stacks of each busy thread, and the source of the ``while`` that it is in. Two looks in a row, some time apart, that
# find the same loops are evidence as strong as a GPU near 100 % at idle power. A look that finds a busy thread in
# other functions each time shows work, and a run that works is ended by the slow clock only (deadlines.py). A thread
# that waits for its GPU uses a core, too; a look tells that from work, and GPUs at rest tell that nothing will come.
#
# Known false alarms that the rules are made against: a first silent evaluation, an index built in one Python function,
# a single long call (``sqrtm``, ``sorted``): they keep results or are inside a call, so no look finds such a loop. An
# optimizer on the CPU beside an idle GPU computes in its own library and not in the driver's.

AGAIN = 0.33
"""x ``min_s`` (30 s): from one look to the next."""


class LoopWatch(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``since``: the last progress before the silence that was looked at, in active seconds; None = none yet.

    ``order``: decision whose outcome is awaited, 0 = none; ``asked_at``: when, in active seconds; ``silent_s``: the
    silence then. ``agreed``: looks in a row that found the ``places``; it takes two. ``polls``: one of these asks for
    something that may still come; ``waits``: one of them is a wait for a GPU; ``moving``: a look shows work.
    """

    since: float | None = None
    order: int = 0
    asked_at: float = 0.0
    silent_s: float = 0.0
    agreed: int = 0
    places: tuple[str, ...] = ()
    polls: bool = False
    waits: bool = False
    moving: bool = False


def answered(watch: LoopWatch, outcome: Outcome) -> LoopWatch:
    """Take what a look found. One that could read no stack shows neither a loop nor work."""
    if outcome.data.get("unread") is True:
        return msgspec.structs.replace(watch, order=0)
    loops, waits = _places(outcome, "loops", "is in the loop"), _places(outcome, "waits", "waits for its GPU in")
    places = (*loops, *waits)
    if not outcome.ok or not places or outcome.data.get("elsewhere"):
        moving = watch.moving or (outcome.ok and outcome.data.get("moving") is True)
        return msgspec.structs.replace(watch, order=0, agreed=0, places=(), polls=False, waits=False, moving=moving)
    agreed = watch.agreed + 1 if places == watch.places else 1
    polls = outcome.data.get("polls") is True
    return msgspec.structs.replace(
        watch, order=0, agreed=agreed, places=places, polls=polls, waits=bool(waits), moving=False
    )


def _places(outcome: Outcome, name: str, does: str) -> tuple[str, ...]:
    found = outcome.data.get(name)
    items = sorted(found.items()) if isinstance(found, dict) else ()
    return tuple(f"process {pid} {does} {place}" for pid, place in items)
