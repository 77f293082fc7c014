"""How long phases take, stopped trainers, and the ranks of a distributed training."""

from typing import Literal

import msgspec

from ...model.observation import Agent, Outcome, ProcessSample, Rank
from ...model.progress import Phase
from ...model.run import PhaseHabit
from ...model.text import LazyPattern
from ..scales import AT_MOST, LASTS_S, MINUTE_S, SHORT_CHARS
from ..text.fields import find_step
from ..text.lines import own_text
from .liveness import NEWEST_WEIGHT

# Whether the trainer was stopped by a signal that is not ours (state T), and how much of it.
#
# A pause is a stop of every computing process: time does not count until it is continued. One stopped rank of several
# leaves the others waiting for it: a hang. A stopped helper is neither. Sources: a trainer stopped with ``kill -STOP``
# or Ctrl-Z that was shown as running for 18 minutes; a stopped ``sleep`` in the tree that switched hang detection off.
#
# Which processes compute is known from the sensor. Without that (a recorded trace), processes that were stopped while
# steps were made count for nothing; of the others one is taken for the whole trainer unless something else still works.

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


# The ranks of a distributed training: which one fell silent, and which one ended first by itself.
#
# All ranks stop when one does, so the log and the exit status show the victims: the watchdog of a healthy rank ends it
# before the silent one, and a launcher ends what is left. Known from the processes (the environment names the rank) and
# from the lines that carry a rank. If neither tells the ranks apart, nothing is said.


class SeenRank(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One rank. Times in run seconds. ``state``: of its process, None = not known; ``gone_t``: when it was missing.

    ``line``, ``line_t``, ``step``: its newest line and step; None = no line of it was told apart.
    """

    rank: int
    pid: int | None = None
    state: str | None = None
    gone_t: float | None = None
    stopped_t: float | None = None
    """When it was last seen stopped (state T): while it is killed it has other states for a moment."""
    node: str = ""
    line: str | None = None
    line_t: float | None = None
    step: int | None = None
    own: bool = False
    """``line`` is of its own log file, which no other rank writes."""


Ranks = tuple[SeenRank, ...]


def with_processes(ranks: Ranks, found: tuple[Rank, ...], t: float) -> Ranks:
    now = {each.rank: each for each in found}
    kept = [_with_process(before, now.pop(before.rank, None), t) for before in ranks]
    kept += [_with_process(SeenRank(rank=p.rank, node=p.node), p, t) for p in now.values() if p.state not in "ZX"]
    return tuple(sorted(kept, key=lambda each: each.rank)[:AT_MOST])


def _with_process(each: SeenRank, process: Rank | None, t: float) -> SeenRank:
    """Take its process, and the newest line of its own log file."""
    if process is not None and process.line and (process.line != each.line or not each.own):
        at = t - process.seen_s - (process.line_age_s or 0.0)
        step = step_of(process.line)
        each = msgspec.structs.replace(
            each, line=process.line, line_t=at, step=each.step if step is None else step, own=True
        )
    if process is None or process.state in "ZX":
        gone = each.gone_t is not None or each.pid is None
        return each if gone else msgspec.structs.replace(each, gone_t=t)
    return msgspec.structs.replace(
        each, pid=process.pid, state=process.state, gone_t=None, stopped_t=t if process.state == "T" else each.stopped_t
    )


def step_of(line: str) -> int | None:
    text = own_text(line).text
    found = find_step(text.lower())
    if found is not None:
        return found.step
    bar = _BAR.search(text)
    return None if bar is None else int(bar["step"])


_BAR = LazyPattern(r"\b(?P<step>\d+)/\d+ \[\d*:?\d\d:\d\d")
"""tqdm: ``| 300/10000 [12:30<6:44:10, 2.5s/it]``."""


def with_text(ranks: Ranks, text: str, t: float) -> Ranks:
    """Take text of the log: the newest line of each rank that it names. Numbers alone count for known ranks only."""
    if not ranks and _NAMED.search(text) is None:
        return ranks
    known = {each.rank: each for each in ranks}
    for line in text.splitlines():
        rest, name, _ = own_text(line.strip())
        if not name.isdecimal() or not rest.strip():
            continue
        rank = int(name)
        if rank in known and known[rank].own:
            continue
        if rank not in known and (_NAMED.search(line) is None or len(known) >= AT_MOST):
            continue
        step = find_step(rest.lower())
        known[rank] = msgspec.structs.replace(
            known.get(rank, SeenRank(rank=rank)),
            line=rest.strip()[:SHORT_CHARS],
            line_t=t,
            step=step.value if step is not None else known[rank].step if rank in known else None,
        )
    return tuple(known[rank] for rank in sorted(known))


_NAMED = LazyPattern(r"\[(?i:default|rank)[ :]{0,2}\d+\]|(?i:rank) ?\d+ ?[:|]")


def silent(ranks: Ranks, now_t: float) -> str:
    """A sentence that names the rank for which the others wait; "" if it cannot be told.

    A stopped one is named by its pause (pauses.py). If the processes of all have ended, none waits.
    """
    processes = [each for each in ranks if each.pid is not None]
    if processes and all(each.gone_t is not None for each in processes):
        return ""
    gone = [each for each in ranks if each.gone_t is not None]
    blocked = [each for each in ranks if each.pid is not None and each.gone_t is None and each.state == "D"]
    return (
        _all_but_some(ranks, gone, "has ended, and the others wait for it")
        or _all_but_some(ranks, blocked, "is blocked in the kernel (state D)")
        or _behind(ranks, now_t)
    )


def _behind(ranks: Ranks, now_t: float) -> str:
    """The rank that is at a lower step than all others, or whose newest line is older than theirs."""
    told = [each for each in ranks if each.line_t is not None]
    if len(told) != len(ranks) or not told:
        return ""
    steps = [each.step for each in told if each.step is not None]
    if len(steps) == len(told) and min(steps) < max(steps):
        found = [each for each in told if each.step == min(steps)]
        return _all_but_some(ranks, found, f"is behind at step {min(steps)}, the others are at {max(steps)}")
    newest = max(each.line_t or 0.0 for each in told)
    found = [each for each in told if newest - (each.line_t or 0.0) > LASTS_S]
    if not found:
        return ""
    last = f"{now_t - max(each.line_t or 0.0 for each in found):.0f} s"
    return _all_but_some(ranks, found, f'printed nothing for {last}; its last line: "{found[0].line}"')


def stopped(ranks: Ranks) -> str:
    """A sentence about the ranks that were stopped until they ended; "" = none was."""
    found = [
        each
        for each in ranks
        if each.state == "T"
        or (each.stopped_t is not None and each.gone_t is not None and each.gone_t - each.stopped_t <= LASTS_S)
    ]
    return _all_but_some(ranks, found, "was stopped (state T), and the others waited for it")


def _all_but_some(ranks: Ranks, found: list[SeenRank], what: str) -> str:
    if not found or len(found) == len(ranks):
        return ""
    names = ", ".join(f"{each.rank}{'' if each.pid is None else f' (pid {each.pid})'}" for each in found)
    if len(found) == 1:
        return f"rank {names} {what}"
    return f"ranks {names}: each {what}"


# What the launcher of several ranks (torchrun) does by itself: it starts its workers again, or waits without workers.
#
# One restart authority at a time: while an agent of torchrun has restarts left, it starts its workers again inside the
# attempt, and that is no restart of ours. Ours comes when torchrun has ended, or when the run hangs. An agent whose
# peer was ended waits in its rendezvous without a worker and without a word, for its time-out of 10 to 15 minutes (seen
# with torch 2.13): nothing trains meanwhile, and the silence is a hang of its own kind. As long as no agent has ended,
# the others may come: nodes start at different times. torchrun gives that up itself, with an error that names the
# rendezvous; only if it does not, it is a hang.


class Launcher(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``begun``: ranks that were begun anew in the newest restart of the workers. ``restarts``: those that were seen.

    ``told``: it was said that the launcher restarts. ``agents``: the newest ones.
    ``from_step``: step at which the workers ended that are begun anew, until the first step after that.
    """

    begun: tuple[int, ...] = ()
    restarts: int = 0
    told: bool = False
    agents: tuple[Agent, ...] = ()
    peers: int = 0
    """The most agents that were seen at a time."""
    from_step: int | None = None


def with_sample(known: Launcher, ranks: Ranks, sample: ProcessSample) -> tuple[Launcher, tuple[Rank, ...]]:
    """Take a sample. Also the ranks that begin a restart of the workers with it; () = none begins.

    ``ranks``: as they were before it.
    """
    if not sample.agents and not known.agents:
        return known, ()
    before = {each.rank: each.pid for each in ranks if each.pid is not None}
    anew = [each for each in sample.ranks if each.state not in "ZX" and before.get(each.rank, each.pid) != each.pid]
    begun = known.begun
    again: tuple[Rank, ...] = ()
    if anew and (known.restarts == 0 or any(each.rank in begun for each in anew)):
        again, begun = tuple(anew), ()
    return (
        msgspec.structs.replace(
            known,
            begun=tuple(sorted({*begun, *(each.rank for each in anew)})),
            restarts=known.restarts + bool(again),
            agents=sample.agents,
            peers=max(known.peers, len(sample.agents)),
        ),
        again,
    )


def joining_s(known: Launcher) -> float | None:
    """How long the agents still may wait for each other, none of them with a worker; None if they do not.

    An agent that ended does not come back. Of the others the one counts that gives up last.
    """
    waits = bool(known.agents) and not any(agent.workers for agent in known.agents)
    if not waits or len(known.agents) < known.peers or any(agent.join_s is None for agent in known.agents):
        return None
    # The last call of torchrun's rendezvous and its end take up to 30 s each (torch 2.13).
    return max(agent.join_s or 0.0 for agent in known.agents) + MINUTE_S


def waiting(known: Launcher) -> str:
    """A sentence about the agents that live without a worker while none has one; "" if that is not so."""
    if not known.agents or any(agent.workers for agent in known.agents):
        return ""
    names = ", ".join(f"pid {agent.pid}{f' on {agent.node}' if agent.node else ''}" for agent in known.agents)
    one = len(known.agents) == 1
    lives = "an agent of torchrun lives" if one else f"{len(known.agents)} agents of torchrun live"
    ended = known.peers - len(known.agents)
    after = f"; {ended} of {known.peers} agents ended" if ended else ""
    return f"{lives} without a worker and wait{'s' * one} for others ({names}){after}"
