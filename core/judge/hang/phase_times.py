"""How long the phases of a run take when all is well, and how long they show no sign of life: learned as they end.

Kept apart for each phase: an evaluation of twenty minutes says nothing about how long a save may take. Words of a dead
trainer (a watchdog's "saving before abort") teach nothing. The same source as the step clock: learned time-outs that
know sections (NVIDIA's resiliency extension). Known false alarms: the first time of a phase, nothing is known of it.
"""

import msgspec

from ...model.habits import PhaseHabit
from ...model.progress import Phase

UNSEEN = PhaseHabit()


class Routine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``start``: launch to first step. ``phases``: those that ended by themselves. ``runs``: those before."""

    runs: int = 0
    start: PhaseHabit = UNSEEN
    phases: dict[Phase, PhaseHabit] = {}


def started(routine: Routine, lasted_s: float, quiet_s: float) -> Routine:
    """An attempt made its first step."""
    return msgspec.structs.replace(routine, start=_grown(routine.start, lasted_s, quiet_s))


def ended(routine: Routine, phase: Phase, lasted_s: float, quiet_s: float) -> Routine:
    """A phase was followed by another one, or by a step. ``quiet_s``: longest silence since the last step."""
    grown = _grown(habit(routine, phase), lasted_s, quiet_s)
    return msgspec.structs.replace(routine, phases={**routine.phases, phase: grown})


def habit(routine: Routine, phase: Phase) -> PhaseHabit:
    """What is known of a phase."""
    return routine.phases.get(phase, UNSEEN)


def merged(one: PhaseHabit, other: PhaseHabit) -> PhaseHabit:
    """The longer of both."""
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
