"""What a training job is used to: how long its phases and silences last, what its GPUs draw. Kept from run to run.

Lengths only ever lengthen a patience; what may shorten one (the start, the pace, the power) belongs to the job as it
was set up, and is dropped when its config changed (``without_pace``).
"""

import msgspec

from ..progress import Phase

FADE = 0.9
"""Share of a length that the next run still goes by: one odd night (a slow disk) does not count for ever."""


class PhaseHabit(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``times`` the phase was seen to end by itself; the longest it took; the longest stretch of it without a sign."""

    times: int = 0
    longest_s: float = 0.0
    quiet_s: float = 0.0


class GpuHabit(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Lowest power seen, and power and utilisation while training; under which power limit (of which card) that was."""

    index: int
    rest_w: float | None = None
    busy_w: float | None = None
    util_pct: float | None = None
    limit_w: float | None = None


class Habits(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All None or 0 = not known. Seconds are active seconds: suspends and stops by a person are left out.

    ``runs`` of this job that taught something. ``start``: from the launch to the first step. ``phases``: by phase.
    ``lull_s``: longest silence between two steps that was harmless; ``spin_s``: the same of a GPU at 100 % and low
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
    """As the next run goes by them."""
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
    """What still holds when the job's config changed: its lengths, not its speed and power.

    The start keeps its silence, but counts as never seen, so that it shortens no patience.
    """
    return Habits(
        runs=habits.runs,
        start=PhaseHabit(quiet_s=habits.start.quiet_s),
        phases=habits.phases,
        lull_s=habits.lull_s,
        spin_s=habits.spin_s,
        pause_s=habits.pause_s,
    )
