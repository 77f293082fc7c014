"""What the next run of the same command learns from this one, taken from the judge's state and put into a new one.

The state learns only from what was followed by a step, so habits may be taken at any time.
"""

import msgspec

from ...model.launch.habits import GpuHabit, Habits
from ...model.text.plural import plural
from ..hang import phase_times
from ..hang.gpu_activity import GpuNormal
from ..hang.phase_times import PhaseTimes
from ..state import JudgeState

replace = msgspec.structs.replace


def habits_of(state: JudgeState) -> Habits | None:
    """Return what was learned from this run and earlier ones; None before its first step."""
    if state.attempt.beat_t is None and state.failed_position is None:
        return None
    seen, clock = state.liveness, state.clock
    return Habits(
        runs=state.phase_times.runs + 1,
        start=state.phase_times.start,
        phases=state.phase_times.phases,
        lull_s=seen.longest_silence_s,
        spin_s=seen.longest_spin_s,
        pause_s=clock.pause_s,
        line_s=clock.slow_s,
        typical_s=clock.typical_s,
        step_s=clock.step_s,
        cpu_cores=seen.cpu_normal,
        gpus=tuple(
            GpuHabit(index=n.index, rest_w=n.rest_w, busy_w=n.busy_w, util_pct=n.util_pct, limit_w=n.limit_w)
            for n in seen.normals
        ),
    )


def with_habits(state: JudgeState, habits: Habits) -> JudgeState:
    """Add what was learned from earlier runs. What this run has learned itself stays."""
    seen, clock, own = state.liveness, state.clock, state.phase_times
    normals = tuple(
        GpuNormal(
            index=g.index,
            rest_w=g.rest_w,
            busy_w=g.busy_w,
            util_pct=g.util_pct,
            limit_w=g.limit_w,
            from_earlier_run=True,
        )
        for g in habits.gpus
    )
    phases = {phase: phase_times.merged(phase_times.habit(own, phase), known) for phase, known in habits.phases.items()}
    return replace(
        state,
        phase_times=PhaseTimes(
            runs=habits.runs,
            start=phase_times.merged(own.start, habits.start),
            phases={**own.phases, **phases},
        ),
        clock=replace(
            clock,
            pause_s=max(clock.pause_s, habits.pause_s),
            slow_s=clock.slow_s if clock.slow_s is not None else habits.line_s,
            typical_s=clock.typical_s if clock.typical_s is not None else habits.typical_s,
            step_s=clock.step_s if clock.step_s is not None else habits.step_s,
        ),
        liveness=replace(
            seen,
            longest_silence_s=max(seen.longest_silence_s, habits.lull_s),
            longest_spin_s=max(seen.longest_spin_s, habits.spin_s),
            cpu_normal=seen.cpu_normal if seen.cpu_normal is not None else habits.cpu_cores,
            normals=seen.normals or normals,
        ),
    )


def describe_habits(habits: Habits) -> str:
    known = []
    if habits.start.times:
        known.append(f"the first step comes after {habits.start.longest_s:.0f} s at most")
    known.extend(f"{phase} up to {habit.longest_s:.0f} s" for phase, habit in sorted(habits.phases.items()))
    watts = [f"GPU {gpu.index} {gpu.busy_w:.0f} W" for gpu in habits.gpus if gpu.busy_w is not None]
    known.extend(watts)
    return f"{plural(habits.runs, 'earlier run')} of this command taught: {', '.join(known) or 'its pauses'}"
