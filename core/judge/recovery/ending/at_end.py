"""What the user wants at the end of a run (``[end]``): commands that are run once, and a time at which it ends.

A command is a decision in the journal before it is run, so a new supervisor never runs it again. The time is fixed at
the first launch, and anew by whoever starts a stopped run again; end_time.py has the stop.
"""

from typing import Literal

from ....model.decision import EndWatch, RunAtEnd
from ...backup import backing_up
from ...knowledge import Knowledge
from ...state import EndTime, JudgeState
from ...step_builder import StepBuilder

SLACK_S = 5.0
"""Beside its graces, a stop takes the time to look at its processes."""


def run_command(builder: StepBuilder, event: Literal["finish", "give_up", "end_by"]) -> None:
    """Run the user's command for this end, if there is one."""
    end = builder.knowledge.settings.end
    commands = {"finish": end.at_finish, "give_up": end.at_give_up, "end_by": end.at_end_by or end.at_give_up}
    command = commands[event]
    builder.set(ends=None)
    backing_up.last(builder)
    if command:
        builder.decide(RunAtEnd, f"run {command[0]} at the end ({event})", event=event, command=command)


def set_time(builder: StepBuilder, *, after_s: float = 0.0) -> None:
    """Fix when the run ends by ``end_by``, if it is not fixed yet or the setting is another one now.

    ``after_s``: the first time that is later than that from now.
    """
    knowledge, known = builder.knowledge, builder.state.ends
    said = knowledge.settings.end.end_by
    if (known.said if known is not None else "") == said:
        return
    wall = knowledge.end_after(knowledge.created_wall + builder.t + after_s)
    if wall is None:
        builder.set(ends=None)
        return
    ends = EndTime(said=said, t=wall - knowledge.created_wall)
    builder.set(ends=ends)
    minutes, lead_s = max(0.0, ends.t - builder.t) / 60.0, stop_takes_s(knowledge, builder.state)
    left = f"{minutes:.0f} min" if minutes < 120.0 else f"{minutes / 60.0:.1f} h"
    builder.note(f"it ends by {said} (in {left}): the stop begins {lead_s:.0f} s before, so that it can save")


def stop_takes_s(knowledge: Knowledge, state: JudgeState) -> float:
    """How long a stop may take, the save before it included."""
    restart = knowledge.settings.restart
    save_s = restart.save_wait_s if knowledge.can_ask_to_save or state.beating else 0.0
    return save_s + restart.interrupt_grace_s + restart.terminate_grace_s + SLACK_S


def over(builder: StepBuilder) -> None:
    """The run is stopped because its time is over: notify, run the command, end the supervisor."""
    said, resume = builder.knowledge.settings.end.end_by, builder.knowledge.typed("resume")
    body = f"it was to end by {said}; the training is not done: `{resume}` goes on"
    builder.notify("end_by", "stopped at its time", body)
    run_command(builder, "end_by")
    builder.decide(EndWatch, f"stopped at its time ({said}); `{resume}` goes on", exit_code=1)
