"""Usual values of a training job, kept from run to run: length of its phases and silences, power of its GPUs.

Lengths only make deadlines longer. What may make one shorter (start, pace, power) holds for one config and is dropped
if the config changed (``without_pace``).
"""

import msgspec

from ..progress import Phase

FADE = 0.9
"""Share of a length that the next run uses: one unusual run (a slow disk) loses its influence."""


class PhaseHabit(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``times``: how often the phase ended by itself; its longest duration; its longest silence. Seconds."""

    times: int = 0
    longest_s: float = 0.0
    quiet_s: float = 0.0


class GpuHabit(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Lowest power, and power and utilisation while training, at the given power limit of the given card."""

    index: int
    rest_w: float | None = None
    busy_w: float | None = None
    util_pct: float | None = None
    limit_w: float | None = None


class Habits(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All None or 0 = not known. Seconds are active seconds: suspends and stops by a person are left out.

    ``runs``: number of runs that were learned from. ``start``: from the launch to the first step. ``phases``: by phase.
    ``lull_s``: longest harmless silence between two steps; ``spin_s``: the same of a GPU at 100 % and low
    power; ``pause_s``: longest pause that no phase announced. ``line_s``, ``typical_s``: slowest and usual distance of
    progress lines; ``step_s``: of one step. ``cpu_cores``: usual CPU of the whole tree while training.
    """

    runs: int = 0
    start: PhaseHabit = PhaseHabit()
    phases: dict[Phase, PhaseHabit] = {}
    lull_s: float = 0.0
    spin_s: float = 0.0
    pause_s: float = 0.0
    line_s: float | None = None
    typical_s: float | None = None
    step_s: float | None = None
    cpu_cores: float | None = None
    gpus: tuple[GpuHabit, ...] = ()


def faded(habits: Habits) -> Habits:
    """The values for the next run: lengths fade."""
    return msgspec.structs.replace(
        habits,
        start=_faded(habits.start),
        phases={phase: _faded(habit) for phase, habit in habits.phases.items()},
        lull_s=FADE * habits.lull_s,
        spin_s=FADE * habits.spin_s,
        pause_s=FADE * habits.pause_s,
    )


def _faded(habit: PhaseHabit) -> PhaseHabit:
    return PhaseHabit(times=habit.times, longest_s=FADE * habit.longest_s, quiet_s=FADE * habit.quiet_s)


def without_pace(habits: Habits) -> Habits:
    """What stays valid after a change of the config: lengths, but not speed and power.

    The silence of the start is kept, but counts as never seen, so it makes no deadline shorter.
    """
    return Habits(
        runs=habits.runs,
        start=PhaseHabit(quiet_s=habits.start.quiet_s),
        phases=habits.phases,
        lull_s=habits.lull_s,
        spin_s=habits.spin_s,
        pause_s=habits.pause_s,
    )
