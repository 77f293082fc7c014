"""[backup]: the newest verified checkpoint is copied, one at a time, never twice; a failure is told and repeated."""

from typing import Any

import pytest

from tests.builders import World, judge
from tests.unit.test_judge_recovery import crash, running
from tests.unit.test_judge_takeover import from_journal
from trainwatch.core.judge.memory import with_result
from trainwatch.core.judge.state import to_snapshot
from trainwatch.core.model.checkpoint import Evaluation
from trainwatch.core.model.decision import BackUpCheckpoint, EndWatch, NotifyPeople, RunAtEnd
from trainwatch.core.model.observation import CheckpointEvent, HostSample, Outcome, Start
from trainwatch.core.model.settings import Backup, End, Hang, Restart, Settings
from trainwatch.core.model.story import ActionStory, RunStory, Situation
from trainwatch.core.views.run_summary import BACK_UP, backup_state, needs
from trainwatch.core.views.state.status import backup_line

WALL = 1_000_000.0


def world(*, silent: bool = True, restarts: int = 3, which: Any = "newest") -> World:
    settings = Settings(
        backup=Backup(to="/mnt/other", which=which),
        end=End(at_give_up=("off",)),
        hang=Hang(min_s=1e5, max_s=1e6),
        restart=Restart(max_restarts=restarts),
    )
    found = running(judge(settings, created_wall=WALL), steps=60)
    found.silent = {"back_up"} if silent else set()
    return found


def save(world: World, step: int) -> World:
    return world.see(
        CheckpointEvent(
            t=world.t, path=f"out/step-{step}", event="complete", step=step, size_bytes=1e6, mtime=WALL + world.t
        )
    )


def copied(world: World) -> list[str]:
    return [order.path for order in world.of(BackUpCheckpoint)]


def outcome(world: World, *, ok: bool, detail: str = "") -> World:
    order = world.of(BackUpCheckpoint)[-1].id
    return world.see(Outcome(t=world.t, decision=order, action="back_up", ok=ok, detail=detail))


def test_each_verified_checkpoint_is_copied_once() -> None:
    run = save(world(silent=False), 20).wait(5)
    save(run, 40).wait(5)
    run.see(HostSample(t=run.t + 1), HostSample(t=run.t + 2))
    assert copied(run) == ["out/step-20", "out/step-40"]


def test_one_copy_is_made_at_a_time_and_then_the_newest() -> None:
    run = save(world(), 20).wait(5)
    save(run, 40).wait(5)
    save(run, 60).wait(5)
    assert copied(run) == ["out/step-20"]
    outcome(run, ok=True)
    assert copied(run) == ["out/step-20", "out/step-60"]


def test_a_copy_that_fails_is_told_once_and_made_again_later() -> None:
    run = save(world(), 20).wait(1)
    outcome(run, ok=False, detail="no route to host")
    told = [n for n in run.of(NotifyPeople) if "not copied" in n.title]
    assert [n.body.splitlines()[0] for n in told] == ["no route to host"]
    run.see(HostSample(t=run.t + 300))
    assert len(copied(run)) == 1
    run.see(HostSample(t=run.t + 400))
    assert len(copied(run)) == 2
    outcome(run, ok=False, detail="no route to host")
    run.see(HostSample(t=run.t + 700))
    outcome(run, ok=False)
    run.see(HostSample(t=run.t + 7000))
    assert len(copied(run)) == 3, "three attempts for one checkpoint"
    assert len([n for n in run.of(NotifyPeople) if "not copied" in n.title]) == 1
    save(run, 40)
    assert copied(run)[-1] == "out/step-40"


def test_a_copy_that_was_cut_off_with_its_supervisor_does_not_keep_back_the_next_one() -> None:
    later = from_journal(run := save(world(), 20).wait(1), to_snapshot(run.state))
    later.see(Start(t=later.t, attempt=1, pid=7, adopted=True))
    assert copied(save(later, 40)) == ["out/step-40"]


@pytest.mark.parametrize("ok", [True, False])
def test_the_end_waits_for_the_copy_of_the_newest_checkpoint(ok: bool) -> None:
    run = save(world(restarts=0), 20).wait(1)
    save(run, 40)
    crash(run, "CUDA error: an illegal memory access was encountered")
    assert run.word == "given_up"
    outcome(run, ok=True)
    for _ in range(1 if ok else 3):
        assert run.of((RunAtEnd, EndWatch)) == [], "the machine is not ended before the last try"
        outcome(run, ok=ok).see(HostSample(t=run.t + 601))
    assert copied(run) == ["out/step-20"] + ["out/step-40"] * (1 if ok else 3)
    assert [type(each) for each in run.of((RunAtEnd, EndWatch))] == [RunAtEnd, EndWatch]
    assert any("not copied" in notice.title for notice in run.of(NotifyPeople)) is not ok


def test_what_is_left_of_the_end_is_done_once_by_the_next_supervisor() -> None:
    """Before: the command that stops a rented machine was not run, and the machine went on for nothing."""
    run = crash(save(world(restarts=0), 20), "CUDA error: an illegal memory access was encountered")
    later = from_journal(run, to_snapshot(run.state)).begin()
    later.silent = run.silent
    outcome(later.see(HostSample(t=later.t)), ok=True)
    assert (run.of(RunAtEnd), copied(later)) == ([], ["out/step-20"])
    assert [type(each) for each in later.of((RunAtEnd, EndWatch))] == [RunAtEnd, EndWatch]
    later.entries = [*run.entries, *later.entries]
    assert from_journal(later, to_snapshot(later.state)).begin().see(HostSample(t=later.t + 61)).decisions == []


def scored(run: World, step: int, score: float) -> World:
    """The checkpoint of this step is evaluated."""
    mtime = next(k.mtime for k in run.state.saved.checkpoints.known if k.path == f"out/step-{step}")
    assert mtime is not None
    found = Evaluation(path=f"out/step-{step}", mtime=mtime, metric="fid", score=score, better="lower")
    run.change("saved", evaluations=with_result(run.state.saved.evaluations, found))
    return run.see(HostSample(t=run.t + 1))


@pytest.mark.parametrize(
    ("which", "expected"),
    [
        ("newest", ["out/step-20", "out/step-40", "out/step-60"]),
        ("best", ["out/step-20", "out/step-60"]),
        ("both", ["out/step-20", "out/step-40", "out/step-60"]),
    ],
)
def test_only_the_best_is_copied_where_that_is_chosen(which: Any, expected: list[str]) -> None:
    run = world(silent=False, which=which)
    for step, score in ((20, 9.0), (40, 12.0), (60, 7.0)):
        scored(save(run, step).wait(5), step, score)
    assert copied(run) == expected


@pytest.mark.parametrize(
    ("ok", "detail", "line"),
    [
        (None, "", "backup: copy step-20 off this machine …"),
        (True, "step-20: copied to /mnt/other", "backup done: step-20: copied to /mnt/other"),
        (False, "no route to host", "backup FAILED: no route to host"),
    ],
)
def test_status_says_how_the_newest_copy_went(ok: bool | None, detail: str, line: str) -> None:
    action = ActionStory(id=3, t=5.0, kind=BACK_UP, reason="copy step-20 off this machine", ok=ok, detail=detail)
    story = RunStory(actions=(action,))
    assert backup_line(backup_state(story)) == line
    assert [need.kind for need in needs(Situation(story=story))] == (["backup"] if ok is False else [])
    assert BackUpCheckpoint.__struct_config__.tag == BACK_UP
    assert backup_line(backup_state(RunStory())) is None
