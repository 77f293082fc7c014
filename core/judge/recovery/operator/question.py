"""The answer of a person to what was withheld (gate.py): what would have been done is done now."""

import msgspec

from ....model.observation import Command
from ...hang import active_time, step_clock
from ...run_states import Hung, Paused, Running, Starting, Suspended
from ...state import JudgeState
from ...step_builder import StepBuilder
from .. import restart_stages
from ..apply import answer_failure
from . import gate

replace = msgspec.structs.replace


def answers(state: JudgeState, incident: int) -> bool:
    """Whether this incident's question waits for an answer."""
    return state.withheld is not None and state.withheld.action.incident == incident


def is_answer(state: JudgeState, command: Command) -> bool:
    """Whether ``restart`` or ``resume`` means what was withheld. A command with wishes of its own is an order."""
    waiting = state.withheld
    if waiting is None or waiting.follows != "restart":
        return False
    return not has_wishes(command)


def has_wishes(command: Command) -> bool:
    """Whether it says how the next attempt begins."""
    wishes = command.checkpoint, command.profile, command.fresh, command.remedies, command.without_remedies
    return any(wishes)


def ends_pause(state: JudgeState, command: Command) -> bool:
    """Whether ``resume`` lets a stopped process go on: nothing else is asked for, and no question is answered."""
    return isinstance(state.machine, Paused | Suspended) and command.incident is None and not has_wishes(command)


def carry_out(builder: StepBuilder, by: str) -> None:
    """Do what was withheld."""
    waiting = builder.state.withheld
    assert waiting is not None  # is_answer was asked
    gate.close(builder, f"ordered by {by}")
    plan = replace(waiting.plan, by=by, reason=f"{waiting.plan.reason}, ordered by {by}")
    failed = waiting.failed
    if failed is not None:
        answer_failure(
            builder,
            failed.cause,
            plan,
            incident=failed.incident,
            reason=failed.reason,
            retryable=failed.retryable,
            advice=failed.advice,
            settings_at_fault=failed.settings_at_fault,
            job=failed.job,
            confidence=failed.confidence,
        )
    elif waiting.state == "stopped":
        restart_stages.clear_and_restart(builder, plan)
    else:
        restart_stages.stop(builder, "restart", plan)


def judge_again(builder: StepBuilder, by: str) -> None:
    """Everything is done without a person from now on: the run is restarted, or a hang is judged anew."""
    waiting = builder.state.withheld
    if waiting is None:
        return
    if waiting.state == "stopped":
        carry_out(builder, by)
    elif isinstance(builder.state.machine, Hung):
        withdraw(builder, f"{by} chose act = all: it is judged again")
    else:
        gate.close(builder, f"{by} chose act = all")


def withdraw(builder: StepBuilder, why: str) -> None:
    """The hang that a question was about is over, or is to be judged anew: the trainer is watched as before."""
    machine = builder.state.machine
    assert isinstance(machine, Hung)
    builder.close_incident(machine.incident, why)
    now = active_time.now(builder.state.time)
    builder.set(clock=step_clock.restart_wait(builder.state.clock, now))
    if builder.state.trains:
        builder.move("training", Running(), why)
    else:
        builder.move("started", Starting(launched=True), why)
