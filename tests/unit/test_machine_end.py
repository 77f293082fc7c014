"""What SIGTERM means where the end of trainwatch is the end of everything."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.builders import World, judge
from tests.unit.test_judge_recovery import running, save
from tests.unit.test_judge_takeover import taken_over
from trainwatch.core.app.supervise.machine_end import AS_INIT, JOBS, ends_with_us, grace_s, others_end_with, passed_on
from trainwatch.core.model.decision import EndWatch, StartAttempt, StopAttempt
from trainwatch.core.model.observation import CheckpointEvent, Outcome, Start
from trainwatch.core.model.run import AttemptStory
from trainwatch.core.model.settings import End, Settings
from trainwatch.core.model.story import RunStory


def story(state: str, **of_attempt: object) -> RunStory:
    attempt = AttemptStory(number=1, t=0.0, wall=0.0, how="crashed", **of_attempt)  # type: ignore[arg-type]
    return RunStory(state=state, attempts=(attempt,))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("seen", "code", "passed"),
    [
        (story("given_up", code=7), 1, 7),
        (story("given_up", signal=9), 1, 137),
        (story("interrupted", signal="SIGINT"), 0, 130),
        (story("interrupted", code=0), 0, 0),
        (story("interrupted", code=5), 0, 5),
        (story("ended_early", code=0), 1, 1),
        (story("finished", code=3), 0, 0),
        (story("stopped"), 1, 1),
        (RunStory(state="stopped"), 1, 1),
    ],
)
def test_the_status_of_the_trainer_is_passed_on(seen: RunStory, code: int, passed: int) -> None:
    assert passed_on(seen, code) == passed


def test_a_container_and_a_job_are_recognised(tmp_path: Path) -> None:
    assert ends_with_us({}) is None
    assert ends_with_us({AS_INIT: "1"}) == "container"
    assert ends_with_us({"SLURM_JOB_ID": "7"}) == "job"
    assert (grace_s("container", Settings()), grace_s("job", Settings())) == (10.0, 30.0)
    assert grace_s("container", Settings(end=End(grace_s=25.0))) == 25.0


def ending(*, can_ask_to_save: bool = True, within_s: float = 10.0) -> World:
    world = save(running(judge(can_ask_to_save=can_ask_to_save), steps=60), "out/step-20", 20).wait(5)
    world.answer("stop_attempt")
    return world.command("shutdown", by="SIGTERM", stop_trainer=True, within_s=within_s)


def test_the_trainer_is_asked_to_save_and_stopped_within_the_time() -> None:
    world = ending()
    assert world.decisions[-1] == "request_save"
    world.wait(5.5)
    assert world.decisions[-1] == "request_save"
    world.wait(1)
    (stop,) = world.of(StopAttempt)
    assert stop.within_s is not None
    assert 2.0 <= stop.within_s <= 3.5
    assert world.word == "interrupted", "the next start of the container goes on"
    assert world.of(EndWatch)[-1].exit_code == 0


def test_a_machine_that_ends_before_the_stop_is_done_goes_on_at_its_next_start() -> None:
    world = ending()
    world.silent.add("stop_attempt")
    new = taken_over(world.wait(7), live=False)
    assert new.of(StartAttempt)[-1].resume_from == "out/step-20"


def test_a_save_that_came_leaves_the_rest_of_the_time_to_the_stop() -> None:
    world = ending().wait(1)
    save(world, "out/step-61", 61)
    (stop,) = world.of(StopAttempt)
    assert stop.within_s is not None
    assert stop.within_s > 7.0
    assert world.word == "interrupted"


def test_a_checkpoint_that_grows_is_waited_for_until_a_second_before_the_end() -> None:
    world = ending()
    for _ in range(4):
        world.wait(2)
        world.see(CheckpointEvent(t=world.t, path="out/big", event="growing", size_bytes=1e9))
    assert world.decisions[-1] == "request_save"
    world.wait(1.5)
    assert world.decisions[-2:] == ["stop_attempt", "end_watch"]


def test_a_trainer_that_cannot_be_asked_is_stopped_at_once_within_the_time() -> None:
    world = ending(can_ask_to_save=False)
    (stop,) = world.of(StopAttempt)
    assert stop.within_s == 9.0


def launching() -> World:
    world = World(judge(), silent={"start_attempt"}).begin()
    return world.command("shutdown", by="SIGTERM", stop_trainer=True, within_s=10.0)


def test_a_trainer_that_is_being_launched_is_stopped_as_soon_as_it_exists() -> None:
    world = launching()
    assert world.decisions == ["start_attempt"]
    order = world.of(StartAttempt)[-1].id
    world.see(Outcome(t=world.t, decision=order, action="start_attempt", ok=True))
    world.live = 1
    world.see(Start(t=world.t, attempt=1, pid=9))
    assert world.decisions[1:] == ["stop_attempt", "end_watch"]
    assert world.word == "interrupted"


def test_a_launch_that_fails_meanwhile_ends_the_supervisor() -> None:
    world = launching()
    order = world.of(StartAttempt)[-1].id
    world.see(Outcome(t=world.t, decision=order, action="start_attempt", ok=False, detail="no room"))
    assert world.decisions == ["start_attempt", "end_watch"]
    assert world.word == "interrupted"


@pytest.mark.parametrize(
    ("variables", "ends"),
    [
        ({}, False),
        ({"SLURM_JOB_ID": "7"}, True),
        ({"KUBERNETES_SERVICE_HOST": "h"}, True),
        (None, True),  # it has no variables, like one that is being executed: nothing is known
    ],
)
def test_a_supervisor_whose_end_ends_the_trainer_too_is_not_replaced_beside_it(
    variables: dict[str, str] | None, ends: bool
) -> None:
    plain = {name: value for name, value in os.environ.items() if name not in JOBS}
    other = subprocess.Popen(["/bin/sleep", "60"], env={} if variables is None else plain | variables)
    try:
        assert others_end_with(other.pid) is ends
    finally:
        other.kill()
        other.wait()
    assert others_end_with(1)
    assert others_end_with(other.pid), "of a process that is gone nothing is known"
