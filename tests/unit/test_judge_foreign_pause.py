"""A trainer that was stopped by a signal that is not ours."""

import msgspec
import pytest

from tests.builders import World
from tests.unit.test_judge_recovery import running
from trainwatch.core.judge.hang.pauses import Pause, with_process, with_step
from trainwatch.core.model.decision import NotifyPeople
from trainwatch.core.model.observation import Command, LogChunk, ProcessSample, Start
from trainwatch.core.model.story import Situation
from trainwatch.core.views.incidents import incident_view, lasted_s


def sample(states: dict[str, int], **fields: int) -> ProcessSample:
    return ProcessSample(t=0.0, states=states, procs=sum(states.values()), **fields)  # type: ignore[arg-type]


def test_line_that_is_read_late_does_not_end_a_pause() -> None:
    pause = with_process(Pause(), sample({"T": 2}), 100.0, others_work=False)
    pause = with_process(with_step(pause, 105.0), sample({"T": 2}), 106.0, others_work=False)
    assert (pause.stopped, pause.since_t) == ("all", 100.0)


def test_step_between_two_samples_of_the_stop_shows_that_it_is_harmless() -> None:
    pause = with_process(Pause(), sample({"T": 2, "S": 1}), 100.0, others_work=False)
    pause = with_process(with_step(pause, 120.0), sample({"T": 2, "S": 1}), 121.0, others_work=False)
    assert (pause.stopped, pause.harmless) == ("none", 2)
    assert with_process(pause, sample({"T": 3}), 140.0, others_work=False).stopped == "all"


def process(t: float, states: dict[str, int]) -> ProcessSample:
    return ProcessSample(t=t, cpu_cores=0.0, procs=1, states=states)


def stop(world: World, seconds: float, states: dict[str, int] | None = None) -> World:
    for _ in range(int(seconds / 5.0)):
        world.see(process(world.t + 5.0, states or {"T": 1}))
    return world


def test_pause_that_is_over_before_min_s_is_not_notified() -> None:
    world = stop(stop(running(), 60.0), 10.0, {"R": 1})
    assert (world.word, world.incidents) == ("running", [])


def test_trainer_that_is_known_to_be_stopped_has_an_incident_at_once_and_a_notice_after_min_s() -> None:
    world = running()

    def stopped(seconds: float) -> None:
        for _ in range(int(seconds / 5.0)):
            states = {"T": 2, "S": 1}
            world.see(ProcessSample(t=world.t + 5.0, cpu_cores=0.0, procs=3, states=states, computing=2, held=2))

    stopped(20.0)
    assert [(i.kind, i.class_, i.severity, i.open) for i in world.incidents] == [
        ("stall", "suspended", "warning", True)
    ]
    stopped(60.0)
    assert world.of(NotifyPeople) == []
    stopped(20.0)
    assert [n.title for n in world.of(NotifyPeople)] == ["run: stopped by a signal"]
    stop(world, 10.0, {"R": 3})
    assert (world.word, [i.ending for i in world.incidents]) == ("running", ["it was continued"])
    assert "stop_attempt" not in world.decisions
    (seen,) = world.incidents
    assert incident_view(seen, Situation()).cost == f"{lasted_s(seen):.0f} s without training"
    assert lasted_s(seen) >= 100.0  # from the signal on, not from when it was clear


@pytest.mark.parametrize("unwatched", [False, True])
def test_a_run_that_was_paused_and_is_continued_by_a_signal_of_others_is_watched_again(unwatched: bool) -> None:
    """Before: it stayed paused for ever, and a hang after that was seen by nobody."""
    world = running()
    world.see(Command(t=world.t + 1.0, verb="pause", by="ann"))
    stop(world, 10.0, {"R": 1, "S": 2})  # the signal is under way
    stop(world, 60.0, {"T": 3})
    world.see(process(world.t + 5.0, {}))  # the tree could not be read
    if unwatched:  # its supervisor died, and another one came after the signal
        world.see(Start(t=world.t + 60.0, attempt=1, pid=4243, adopted=True))
    assert world.word == "paused"
    stop(world, 60.0, {"R": 1, "S": 2})
    assert world.word == "running"
    stop(world, 7200.0, {"S": 3})
    assert world.hangs


def test_learned_deadline_begins_anew_after_the_pause() -> None:
    world = stop(stop(stop(running(), 3600.0), 60.0, {"S": 1}), 1800.0, {"S": 1})
    assert [i.kind for i in world.incidents][:3] == ["stall", "quiet", "hang"]
    assert world.hangs[0].t - 3600.0 > 90.0


def test_step_while_a_process_is_stopped_ends_the_suspension() -> None:
    world = stop(running(), 30.0)
    for step in range(41, 46):
        stop(world, 5.0).see(LogChunk(t=world.t, text=f"\rsteps: 1%| | {step}/10260 [01:00<1:00:00, 2.50s/it]"))
    assert (world.word, world.incidents) == ("running", [])


@pytest.mark.parametrize(
    ("verb", "ok", "word"),
    [
        ("unpause", True, "running"),
        ("pause", True, "paused"),
        ("resume", True, "running"),
        ("stop", True, "stopped"),
    ],
)
def test_commands_to_a_suspended_run(verb: str, ok: bool, word: str) -> None:
    world = stop(running(), 30.0)
    assert world.judge.answer(world.state, msgspec.convert({"t": world.t, "verb": verb}, Command)).ok is ok
    world.command(verb)
    assert world.word == word


def test_a_stop_that_a_person_ended_is_over_at_once() -> None:
    world = stop(running(), 600.0)
    world.command("resume")
    assert (world.word, [i.ending for i in world.incidents]) == ("running", ["it was continued"])
    stop(stop(world, 5.0), 30.0, {"R": 1})  # read before the signal came
    assert (world.word, [i.ending for i in world.incidents]) == ("running", ["it was continued"])


def test_new_supervisor_sees_the_pause_again() -> None:
    world = stop(running(), 600.0)
    world.see(Start(t=world.t, attempt=1, pid=4243, adopted=True))
    assert world.word == "running"
    stop(world, 300.0)
    assert (world.word, len(world.incidents)) == ("suspended", 1)
