"""The states of a run: the table of transitions, its page in the docs, and what holds for single states."""

import runpy
from itertools import product
from pathlib import Path
from typing import get_args

import pytest

from tests.builders import Story
from tests.unit.test_judge_recovery import running
from tests.unit.test_judge_takeover import taken_over
from trainwatch.core.judge import run_states

DOCS = Path(__file__).parents[2] / "docs"
PLAN = run_states.RestartPlan(reason="restart after a crash")
STATES: dict[str, run_states.Machine] = {
    run_states.name_of(machine): machine
    for machine in (
        run_states.Idle(),
        run_states.Starting(launched=True),
        run_states.Running(),
        run_states.Queued(),
        run_states.Hung(incident=1, capture=2, until_t=30.0),
        run_states.Paused(order=1),
        run_states.Suspended(),
        run_states.Stopping(order=1, then="restart", plan=PLAN),
        run_states.Preparing("list", order=1, plan=PLAN),
        run_states.BackingOff(until_t=60.0, plan=PLAN),
        run_states.Stopped(),
        run_states.Interrupted(),
        run_states.Finished(),
        run_states.EndedEarly(),
        run_states.GivenUp(),
    )
}


def test_the_page_of_states_is_current() -> None:
    written = runpy.run_path(str(DOCS / "make_pages.py"))["run_states_page"]()
    assert (DOCS / "run-states.md").read_text("utf-8") == written, "run: python docs/make_pages.py"


def test_the_diagram_of_how_it_decides_is_current() -> None:
    written = runpy.run_path(str(DOCS / "make_pages.py"))["decides"]()
    assert (DOCS / "how-it-decides.md").read_text("utf-8") == written, "run: python docs/make_pages.py"
    assert "trainer --> ending: " in written


def test_every_state_has_a_row_and_a_word_and_every_event_a_meaning_and_a_use() -> None:
    assert set(STATES) == set(run_states.TRANSITIONS) == set(run_states.WORDS) == set(get_args(run_states.State))
    assert (
        set(run_states.EVENTS)
        == set(get_args(run_states.Event))
        == {event for row in run_states.TRANSITIONS.values() for event in row}
    )


def test_every_state_can_be_reached_and_left() -> None:
    followers = {state: set(row.values()) for state, row in run_states.TRANSITIONS.items()}
    reached = {"idle"}
    while more := set().union(*(followers[state] for state in reached)) - reached:  # type: ignore[index]
        reached |= more
    assert reached == set(STATES)
    assert all(row - {state} for state, row in followers.items())


@pytest.mark.parametrize("state", STATES)
def test_only_the_state_of_the_row_may_follow(state: run_states.State) -> None:
    for event, (name, after) in product(run_states.EVENTS, STATES.items()):
        expected = run_states.TRANSITIONS[state].get(event)
        if name == expected:
            run_states.check_transition(STATES[state], event, after)
        else:
            with pytest.raises(
                run_states.ImpossibleTransitionError, match=f"{state}, {event}: leads to {expected or 'nothing'}"
            ):
                run_states.check_transition(STATES[state], event, after)


def test_only_hung_backing_off_and_a_stop_that_waits_for_the_exit_status_are_due_by_themselves() -> None:
    gone = run_states.Stopping(order=1, then="restart", plan=PLAN, gone_t=10.0)
    due = {
        name: run_states.wake_t(machine) for name, machine in STATES.items() if run_states.wake_t(machine) is not None
    }
    assert due == {"hung": 30.0, "backing_off": 60.0}
    assert run_states.wake_t(gone) == 12.0


def test_a_paused_trainer_that_ends_while_no_supervisor_runs_is_restarted() -> None:
    new = taken_over(running().command("pause"), live=False)
    assert new.decisions == ["end_leftovers", "clear_gpu", "list_checkpoints", "start_attempt"]
    assert new.word == "starting"


def test_a_trainer_that_could_not_be_ended_is_adopted_by_the_next_supervisor() -> None:
    world = running(steps=40)
    for _ in range(2):
        world.answer("stop_attempt", ok=False, detail="stuck in the kernel")
    world.command("stop")
    assert world.word == "given_up"
    world.live = 1
    new = taken_over(world, live=True)
    assert new.word == "running"
    assert new.watch(Story(meta=False, period_s=5.0).train(5)).decisions == []
