"""A trainer that was stopped by a signal that is not ours: the run is *suspended* until somebody continues it.

Time does not count meanwhile, so that nothing is ended; people are notified after ``hang.min_s``. Known false alarms:
none that ends anything; a helper that used more CPU than the trainer itself looks like a pause, until the next step.
"""

import msgspec

from ..hang import active_time, gpu_activity, liveness, step_clock
from ..recovery.operator.commands import follow_trainer
from ..recovery.quiet_incident import close_quiet
from ..run_states import Running, Starting, Suspended
from ..state import JudgeState
from ..step_builder import StepBuilder

SUSPENDED = "suspended"
"""Class of the incident (kind ``stall``)."""


def others_work(seen: liveness.Liveness, now: float, fresh_s: float) -> bool:
    """Return whether a GPU of the run or its CPU is busy now: something that is not stopped still runs."""
    gpu = seen.gpu_at is not None and now - seen.gpu_at <= fresh_s and not gpu_activity.LOADED.isdisjoint(seen.gpu)
    return gpu or bool(seen.cpu_bits & 1)


def concerns(state: JudgeState) -> bool:
    """Return whether a stop is seen, or one that was seen may be over."""
    if state.pause.stopped != "none" or isinstance(state.machine, Suspended):
        return True
    return any(incident.class_ == SUSPENDED for incident in state.incidents)


def check(builder: StepBuilder) -> None:
    """Suspend the run, notify people of it, or go on."""
    state = builder.state
    pause, machine = state.pause, state.machine
    known = next((i for i in state.incidents if i.class_ == SUSPENDED), None)
    if pause.stopped != "all" or pause.since_t is None:
        if isinstance(machine, Suspended):
            _go_on(builder, "the trainer was continued")
        if known is not None:
            builder.close_incident(known.id, "it was continued")
    elif isinstance(machine, Starting | Running):
        builder.set(
            time=msgspec.structs.replace(state.time, stopped=True),
            clock=step_clock.restart_wait(state.clock, active_time.now(state.time)),
        )
        close_quiet(builder, "a signal stopped the trainer")
        builder.move("suspend", Suspended(), "a signal stopped every computing process (state T)")
    elif isinstance(machine, Suspended) and known is None:
        stopped_s = builder.t - pause.since_t
        if stopped_s >= builder.knowledge.settings.hang.min_s:
            how = f"`{builder.knowledge.typed('resume')}` (or `kill -CONT PID`) lets it go on"
            reason = f"a signal that is not from trainwatch stopped the trainer (state T): {how}"
            builder.warn("stall", SUSPENDED, reason, title="stopped by a signal")


def _go_on(builder: StepBuilder, reason: str) -> None:
    time = msgspec.structs.replace(builder.state.time, stopped=False)
    now = active_time.now(time)
    builder.set(
        time=time,
        clock=step_clock.restart_wait(builder.state.clock, now),
        liveness=liveness.after_gap(builder.state.liveness, now),
    )
    follow_trainer(builder, reason)
