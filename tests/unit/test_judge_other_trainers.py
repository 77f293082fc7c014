"""A trainer that was started by hand beside a live attempt: told once, with evidence; nothing is ended for it."""

from typing import Any

import msgspec
import pytest

from tests.builders import World, judge
from tests.unit.test_judge_recovery import running
from trainwatch.core.judge.state import from_snapshot, to_snapshot
from trainwatch.core.model.decision import NotifyPeople
from trainwatch.core.model.observation import OtherTrainer, OtherTrainersSeen
from trainwatch.core.model.run import Incident

RIVAL = OtherTrainer(
    pid=4242,
    start_ticks=99,
    command="python train.py --steps 300",
    cwd="/data/luca",
    began="12:04",
    folder="/data/luca/out",
    files=("/data/luca/out/metrics.csv", "/data/luca/out/events.1"),
    shared=("/data/luca/out/metrics.csv",),
)


def seen(*trainers: OtherTrainer) -> OtherTrainersSeen:
    return OtherTrainersSeen(t=0.0, trainers=trainers)


def with_(**changes: Any) -> OtherTrainer:
    return msgspec.structs.replace(RIVAL, **changes)


def the_incident(world: World) -> Incident:
    found = [each for each in world.incidents if each.class_ == "other_trainer"]
    assert len(found) == 1
    return found[0]


def test_it_is_an_incident_with_pid_command_start_folder_and_the_files_of_both() -> None:
    world = running().see(seen(RIVAL))
    known = the_incident(world)
    assert (known.kind, known.severity, known.title, known.open) == (
        "checkpoint", "danger", "another trainer writes there", True,
    )  # fmt: skip
    assert known.reason == "another trainer (pid 4242, since 12:04) writes to /data/luca/out, too"
    assert known.explanation == (
        "`python train.py --steps 300` was started without trainwatch beside this attempt; each may overwrite what the "
        "other saves: end one (`kill 4242` or `trainwatch stop`)"
    )
    assert [each.what for each in known.evidence] == [
        "pid 4242, since 12:04, in /data/luca: python train.py --steps 300; it runs the command of this run",
        "both have open for writing: /data/luca/out/metrics.csv",
    ]


def test_people_are_told_once_and_nothing_else_is_decided() -> None:
    world = running()
    before = world.decisions
    world.see(seen(RIVAL), seen(RIVAL)).wait(30.0)
    assert world.decisions == before
    assert [told.title for told in world.of(NotifyPeople)] == ["run: another trainer writes there"]
    assert world.word == "running"


def test_files_that_it_opens_later_become_evidence_without_another_notice() -> None:
    world = running().see(seen(with_(files=(), shared=())), seen(RIVAL))
    assert "both have open for writing: /data/luca/out/metrics.csv" in [e.what for e in the_incident(world).evidence]
    assert len(world.of(NotifyPeople)) == 1


def test_it_is_closed_when_the_other_one_is_over() -> None:
    known = the_incident(running().see(seen(RIVAL), seen()))
    assert (known.open, known.ending) == (False, "the other trainer is over: what it wrote is still there")


@pytest.mark.parametrize("began", [False, True])
def test_beside_no_live_attempt_there_is_nothing_to_tell(began: bool) -> None:
    world = running().command("stop") if began else World()
    world.see(seen(RIVAL))
    assert not any(each.class_ == "other_trainer" for each in world.incidents)


def test_a_supervisor_that_takes_over_closes_what_is_over_by_then() -> None:
    world = running().see(seen(RIVAL))
    later = World(judge())
    state = from_snapshot(to_snapshot(world.state))
    assert state is not None
    later.state = state
    later.see(seen())
    assert not any(each.class_ == "other_trainer" for each in later.state.journal.incidents)
