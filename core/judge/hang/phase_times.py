"""How long the phases of a run take, and how long they show no sign of life, learned as each phase ends by itself.

Kept apart for each phase: an evaluation of twenty minutes does not show how long a save takes. Words of a dead
trainer (a watchdog's "saving before abort") teach nothing. Source: learned time-outs by section (NVIDIA's resiliency
extension). Known false alarms: the first time of a phase, of which nothing is known yet.
"""

import msgspec

from ...model.progress import Phase
from ...model.run import PhaseHabit

UNSEEN = PhaseHabit()


class PhaseTimes(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``runs``: earlier runs of this command. ``start``: from launch to first step. ``phases``: those that ended."""

    runs: int = 0
    start: PhaseHabit = UNSEEN
    phases: dict[Phase, PhaseHabit] = {}


def started(times: PhaseTimes, lasted_s: float, quiet_s: float) -> PhaseTimes:
    """Learn from a start: an attempt made its first step."""
    return msgspec.structs.replace(times, start=_grown(times.start, lasted_s, quiet_s))


def ended(times: PhaseTimes, phase: Phase, lasted_s: float, quiet_s: float) -> PhaseTimes:
    """Learn from a phase that ended. ``quiet_s``: longest silence since the last step, in seconds."""
    grown = _grown(habit(times, phase), lasted_s, quiet_s)
    return msgspec.structs.replace(times, phases={**times.phases, phase: grown})


def habit(times: PhaseTimes, phase: Phase) -> PhaseHabit:
    return times.phases.get(phase, UNSEEN)


def merged(one: PhaseHabit, other: PhaseHabit) -> PhaseHabit:
    return PhaseHabit(
        times=max(one.times, other.times),
        longest_s=max(one.longest_s, other.longest_s),
        quiet_s=max(one.quiet_s, other.quiet_s),
    )


def _grown(habit: PhaseHabit, lasted_s: float, quiet_s: float) -> PhaseHabit:
    return PhaseHabit(
        times=habit.times + 1,
        longest_s=max(habit.longest_s, lasted_s),
        quiet_s=max(habit.quiet_s, min(quiet_s, lasted_s)),
    )
