"""What the scheduler says of the job that the attempt runs as: while it waits in the queue, time does not count.

An answer that does not come is no end and no hang. A job that waits for a reason that never ends by itself is told.
"""

import msgspec

from ...model.launch.elsewhere.job import never_ends
from ...model.observation import JobSeen
from ...model.text.suggestion import typed
from ..hang import active_time, liveness, step_clock
from ..knowledge import Knowledge
from ..recovery.ending import time_limit
from ..recovery.operator.commands import follow_trainer
from ..recovery.quiet_incident import close_quiet
from ..run_states import Queued, Running, Starting
from ..state import JudgeState, Result
from ..step_builder import StepBuilder

UNSCHEDULABLE = "unschedulable"
"""Class of the incident (kind ``stall``)."""


def on_job(knowledge: Knowledge, state: JudgeState, seen: JobSeen) -> Result:
    """Take what is known of the job."""
    builder = StepBuilder(knowledge, state)
    time_limit.note_job(builder, seen)
    machine = state.machine
    waits = isinstance(machine, Queued)
    if seen.phase == "queued" and (
        isinstance(machine, Running) or (isinstance(machine, Starting) and machine.launched)
    ):
        builder.set(
            time=msgspec.structs.replace(state.time, stopped=True),
            clock=step_clock.restart_wait(state.clock, active_time.now(state.time)),
        )
        close_quiet(builder, "its job waits in the queue")
        builder.move("queue", Queued(), _in_words(seen))
    elif waits and seen.phase in {"running", "ending", "ended"}:
        time = msgspec.structs.replace(state.time, stopped=False)
        now = active_time.now(time)
        builder.set(
            time=time,
            clock=step_clock.restart_wait(state.clock, now),
            liveness=liveness.after_gap(state.liveness, now),
        )
        follow_trainer(builder, f"job {seen.job} runs{f' on {seen.nodes}' if seen.nodes else ''}")
    _tell_unschedulable(builder, seen)
    time_limit.check(builder)
    return builder.state, tuple(builder.entries)


def _tell_unschedulable(builder: StepBuilder, seen: JobSeen) -> None:
    known = next((each for each in builder.state.incidents if each.class_ == UNSCHEDULABLE), None)
    change = never_ends(seen.reason) if seen.phase == "queued" else None
    if change is not None and known is None:
        builder.warn(
            "stall",
            UNSCHEDULABLE,
            f"job {seen.job} waits for {seen.reason}, which does not end by itself: {change}; with changed settings "
            f"`{typed('restart', builder.knowledge.run)}` submits it anew",
            title="its job cannot start",
        )
    elif known is not None and seen.phase != "unknown" and change is None:
        builder.close_incident(known.id, "it does not wait for that any more")


def _in_words(seen: JobSeen) -> str:
    return f"job {seen.job} is {seen.state or 'PENDING'}" + (f" ({seen.reason})" if seen.reason else "")
