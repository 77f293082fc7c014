"""A training that saves checkpoints while no step is read from its log."""

import msgspec

from tests.builders import World, judge
from trainwatch.core.judge.run_states import Running, Starting
from trainwatch.core.judge.state import from_snapshot, to_snapshot
from trainwatch.core.model.decision import NotifyPeople
from trainwatch.core.model.fact import StateChanged
from trainwatch.core.model.observation import CheckpointEvent, Exit, LogChunk, Start, Tick
from trainwatch.core.model.run import NO_STEP, Incident

UNREAD = "sweep {} of 2400  q {:.3f}\n"


def prints(world: World, *numbers: int, form: str = UNREAD) -> World:
    for number in numbers:
        world.see(LogChunk(t=world.t + 1.0, text=form.format(number, 4 - number / 100)))
    return world


def saves(world: World, name: str, *, after_s: float = 0.0) -> World:
    world.wait(after_s)
    return world.see(CheckpointEvent(t=world.t, path=f"out/{name}", event="complete", size_bytes=1e6))


def begun() -> World:
    return prints(World(judge()).begin(), 1, 2, 3)


def told(world: World) -> list[Incident]:
    return [incident for incident in world.incidents if incident.class_ == NO_STEP]


def test_a_second_save_without_a_step_is_told() -> None:
    world = prints(saves(begun(), "a"), 4, 5, 6, 7)
    saves(world, "a.ema", after_s=20.0)
    assert told(world) == []  # a file of the same save
    saves(world, "b", after_s=40.0)
    (incident,) = told(world)
    assert (incident.kind, incident.severity, incident.open) == ("progress", "warning", True)
    assert incident.reason.startswith("no step is read from the log")
    assert "describe your lines under [progress] shapes" in incident.explanation
    assert [n.title for n in world.of(NotifyPeople)] == ["run: no step is read from the log"]


def test_a_checkpoint_from_before_the_attempt_shows_nothing_of_it() -> None:
    world = World(judge(created_wall=1000.0)).begin()
    world.see(Tick(t=100.0), Exit(t=101.0, code=1)).wait(20.0)
    assert isinstance(world.state.machine, Starting)
    late = CheckpointEvent(t=world.t, path="out/a", event="complete", size_bytes=1e6, mtime=1050.0)
    world.see(late)
    assert isinstance(world.state.machine, Starting)
    world.see(msgspec.structs.replace(late, path="out/b", mtime=1121.0))
    assert isinstance(world.state.machine, Running)


def test_state_of_an_unknown_format_shows_that_it_trains_and_counts_once() -> None:
    world = begun()
    save = CheckpointEvent(
        t=world.t, path="out/state_1.pkl", event="created", size_bytes=1e6, mtime=1.0, verdict="opaque",
        reason="unknown format (pickle)", form="file", understood=False, unknown_make=True,
    )  # fmt: skip
    world.see(msgspec.structs.replace(save, path="out/cache.pkl"))
    assert isinstance(world.state.machine, Starting)
    world.see(save)
    assert world.of(StateChanged)[-1].reason == "it saved state_1.pkl"
    world.wait(40.0).see(save)
    assert len(world.state.course.saves_unread) == 1
    world.see(msgspec.structs.replace(save, path="out/state_2.pkl", mtime=2.0))
    assert len(world.state.course.saves_unread) == 2


def test_a_new_supervisor_of_the_same_attempt_knows_that_it_trains() -> None:
    world = saves(begun(), "a")
    restored = from_snapshot(to_snapshot(world.state))
    assert restored is not None
    start = Start(t=world.t + 1.0, attempt=1, pid=4243, adopted=True)
    world.state = msgspec.structs.replace(restored, taken_over=False)
    world.see(start)
    assert isinstance(world.state.machine, Running)
    saves(world, "b", after_s=40.0)
    assert len(told(world)) == 1
