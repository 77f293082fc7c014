"""A launch chooses its resume point from a complete list of the output folder, and again after the verification."""

import msgspec
import pytest

from tests.builders import Story, World, story_of
from tests.unit.test_judge_recovery import crash, running, save
from trainwatch.core.judge.recovery.takeover import from_story
from trainwatch.core.judge.resume import checkpoint_index
from trainwatch.core.judge.resume.resume_point import newest_verified
from trainwatch.core.judge.run_states import Preparing
from trainwatch.core.judge.scales import AT_MOST
from trainwatch.core.judge.state import to_snapshot
from trainwatch.core.model.checkpoint import Holds
from trainwatch.core.model.decision import ListCheckpoints, NotifyPeople, StartAttempt, VerifyCheckpoint
from trainwatch.core.model.fact import Note, StateChanged
from trainwatch.core.model.observation import CheckpointEvent, Outcome


def outcome(world: World, kind: type, *, ok: bool = True, detail: str = "") -> World:
    order = world.of(kind)[-1]
    action = str(order.__struct_config__.tag)
    return world.see(Outcome(t=world.t, decision=order.id, action=action, ok=ok, detail=detail))


def written(
    step: int, *, t: float = 500.0, holds: Holds | None = "state", mtime: float | None = None
) -> CheckpointEvent:
    return CheckpointEvent(
        t=t,
        path=f"out/step-{step}",
        event="complete",
        step=step,
        size_bytes=1e6,
        mtime=1000.0 + step if mtime is None else mtime,
        holds=holds,
        form="directory",
    )


def resumed(world: World) -> list[str | None]:
    return [start.resume_from for start in world.of(StartAttempt)][1:]


def test_a_launch_waits_for_the_list_and_takes_what_it_found() -> None:
    world = save(running(), "out/step-20", 20)
    world.silent.add("list_checkpoints")
    crash(world).wait(30.0)
    assert (world.of(VerifyCheckpoint), world.word) == ([], "cleaning")
    outcome(save(save(world, "out/step-60", 60), "out/step-40", 40), ListCheckpoints)
    assert [order.path for order in world.of(VerifyCheckpoint)] == ["out/step-60"]
    outcome(world, ListCheckpoints)
    assert resumed(world) == ["out/step-60"]


def test_one_that_became_complete_during_the_verification_is_taken() -> None:
    world = save(running(), "out/step-20", 20)
    world.silent.add("verify_checkpoint")
    crash(world).wait(1.0)
    world.silent.clear()
    outcome(save(world, "out/step-40", 40), VerifyCheckpoint)
    assert [order.path for order in world.of(VerifyCheckpoint)] == ["out/step-20", "out/step-40"]
    assert resumed(world) == ["out/step-40"]


def test_one_that_was_written_anew_during_the_verification_is_verified_again() -> None:
    world = running().see(written(20))
    world.silent.add("verify_checkpoint")
    crash(world)
    world.silent.clear()
    outcome(world.see(written(20, mtime=1500.0)), VerifyCheckpoint)
    assert len(world.of(VerifyCheckpoint)) == 2
    assert resumed(world) == ["out/step-20"]


def test_another_writer_does_not_hold_a_launch_back_for_ever() -> None:
    world = save(running(), "out/step-20", 20)
    world.silent.add("verify_checkpoint")
    crash(world)
    for step in range(40, 60):
        if len(world.of(StartAttempt)) < 2:
            outcome(save(world.wait(1.0), f"out/step-{step}", step), VerifyCheckpoint)
    assert len(resumed(world)) == 1


def test_a_folder_that_cannot_be_listed_holds_the_launch_and_is_told_once() -> None:
    world = save(running(), "out/step-20", 20)
    world.silent.add("list_checkpoints")
    crash(world)
    for _ in range(3):
        outcome(world.wait(60.0), ListCheckpoints, ok=False, detail="out does not answer within 60 s")
    assert [order.limit_s for order in world.of(ListCheckpoints)] == [60.0, 600.0, 600.0, 600.0]
    told = [notice for notice in world.of(NotifyPeople) if "cannot be listed" in notice.title]
    assert len(told) == 1
    assert "out does not answer within 60 s" in told[0].body
    assert isinstance(world.state.machine, Preparing)
    assert "out does not answer within 60 s" in world.of(StateChanged)[-1].reason
    world.silent.clear()
    outcome(world, ListCheckpoints)
    assert resumed(world) == ["out/step-20"]
    assert any("is listed again" in note.text for note in world.of(Note))


def test_a_checkpoint_that_a_person_names_does_not_wait_for_the_list() -> None:
    world = save(running()).command("stop").answer("list_checkpoints", ok=False, detail="no answer")
    world.answer("list_checkpoints", ok=False, detail="no answer").command("resume", checkpoint="elsewhere/step-5")
    assert resumed(world) == ["elsewhere/step-5"]


def test_a_verification_that_fails_for_the_disk_says_nothing_about_the_checkpoint() -> None:
    world = save(save(running(), "out/step-20", 20).wait(1.0), "out/step-40", 40)
    for _ in range(2):
        world.answer("verify_checkpoint", ok=False, detail="out/step-40: Stale file handle")
    crash(world).wait(100.0)
    assert [order.path for order in world.of(VerifyCheckpoint)] == ["out/step-40"] * 3
    assert resumed(world) == ["out/step-40"]
    assert [incident.kind for incident in world.incidents] == ["crash"]
    told = [notice for notice in world.of(NotifyPeople) if "cannot be verified" in notice.title]
    assert len(told) == 1
    assert "Stale file handle" in told[0].body


@pytest.mark.parametrize("order", [1, -1])
def test_a_new_supervisor_takes_the_newest_of_hundreds(order: int) -> None:
    """It resumed from checkpoint 200 of 4020 when more than 200 were there: the first scan had just begun."""
    world = running().see(*(written(step) for step in range(20, 4040, 20)))
    story = story_of(world.entries)
    snapshot = to_snapshot(world.state)
    assert len(snapshot["saved"]["checkpoints"]["known"]) == 64
    for known in (snapshot, None):
        new = World(world.judge)
        new.state = msgspec.structs.replace(
            from_story(story, known, None), machine=world.state.machine, attempt=world.state.attempt
        )
        new.silent.add("list_checkpoints")
        new.t = world.t
        new.begin().see(*(written(step, t=new.t) for step in range(20, 4080, 20)[::order][:30]))
        newest = newest_verified(new.state.saved.checkpoints)
        assert newest is not None
        assert newest.step == (4020 if order == 1 else 4060)
        assert len(new.state.saved.checkpoints.known) == (201 if order == 1 else 203)


def test_the_record_of_a_checkpoint_that_was_written_again_counts_more_than_an_older_snapshot() -> None:
    world = running().see(written(20), written(40))
    old = to_snapshot(world.state)
    story = story_of(world.see(written(20, mtime=1900.0)).entries)
    newest = newest_verified(from_story(story, old, None).saved.checkpoints)
    assert newest is not None
    assert newest.step == 20


def test_of_thousands_those_are_forgotten_that_no_launch_would_take(monkeypatch: pytest.MonkeyPatch) -> None:
    assert AT_MOST > 4000  # forgetting is for what a broken trainer writes, not for a run of some weeks
    monkeypatch.setattr(checkpoint_index, "AT_MOST", 50)
    monkeypatch.setattr(checkpoint_index, "KEPT", 1)
    world = running().see(written(10))
    world.see(*(written(step, holds="weights") for step in range(100, 154)))
    assert len(world.state.saved.checkpoints.known) == 50
    assert resumed(crash(world.watch(Story(meta=False)))) == ["out/step-10"]
