"""What is damaged is copied aside before a start from the beginning, which may write over it."""

from typing import Literal

import pytest

from tests.builders import World
from tests.unit.test_judge_branches import ANYWHERE, GENERIC, NOWHERE, at_step, resumed, run_of, saved
from tests.unit.test_judge_not_understood import is_held, unknown
from tests.unit.test_judge_recovery import crash
from tests.unit.test_judge_takeover import from_journal
from trainwatch.core.judge.state import to_snapshot
from trainwatch.core.model.checkpoint import Verdict
from trainwatch.core.model.decision import CopyAside, ListCheckpoints, NotifyPeople, StartAttempt
from trainwatch.core.model.fact import IncidentOpened
from trainwatch.core.model.observation import CheckpointEvent, Outcome
from trainwatch.core.model.progress import Why

LAST = "out/last.pt"


def cut(
    world: World,
    path: str = LAST,
    *,
    verdict: Verdict = "torn",
    event: Literal["created", "complete"] = "created",
    mtime: float = 0.0,
) -> World:
    """The sensor reports a file of a known make that is cut off."""
    return world.see(
        CheckpointEvent(
            t=world.t, path=path, event=event, size_bytes=2e6, mtime=mtime or world.t, form="file", verdict=verdict,
            reason="is cut off after 2 MB",
        )
    ).wait(1.0)  # fmt: skip


def torn_run(**restart: object) -> World:
    return cut(at_step(run_of(GENERIC, ANYWHERE, **restart), 30))


def kept(world: World) -> list[str]:
    return [e.incident.reason for e in world.of(IncidentOpened) if e.incident.class_ == "kept"]


@pytest.mark.parametrize("verdict", ["torn", "corrupt", "nonfinite"])
def test_the_only_checkpoint_is_copied_aside_before_the_run_begins_anew(verdict: Verdict) -> None:
    """``last.pt`` is always written in place: the first save of the next attempt was the end of what was in it."""
    world = cut(at_step(run_of(GENERIC, ANYWHERE), 30), verdict=verdict)
    world = crash(world.answer("copy_aside", folder="/runs/out.kept/1"))

    (order,) = world.of(CopyAside)
    assert order.paths == (LAST,)
    acts = [type(e) for _, e in world.entries if isinstance(e, CopyAside | StartAttempt)]
    assert acts == [StartAttempt, CopyAside, StartAttempt]
    assert resumed(world) is None
    assert kept(world) == [
        "kept a copy of last.pt as /runs/out.kept/1/last.pt before the run began anew; delete it if not needed"
    ]
    assert "/runs/out.kept/1/last.pt" in next(n.body for n in world.of(NotifyPeople) if "kept" in n.title)


def test_with_another_one_to_resume_from_nothing_is_copied() -> None:
    world = crash(cut(saved(at_step(run_of(GENERIC, ANYWHERE), 30), "out/step-20.pt", 20)))

    assert resumed(world) == "out/step-20.pt"
    assert not world.of(CopyAside)


def test_it_is_copied_once_and_again_if_it_was_written_again() -> None:
    world = crash(torn_run(backoff_s=(0.0,)).answer("copy_aside", folder="/runs/out.kept/1"))
    mtime = world.state.saved.checkpoints.known[-1].mtime
    assert mtime is not None
    world = crash(cut(at_step(world, 10), mtime=mtime))  # found again, unchanged
    assert len(world.of(StartAttempt)) == 3
    assert len(world.of(CopyAside)) == 1

    world = crash(cut(at_step(world, 70)))

    assert len(world.of(StartAttempt)) == 4
    assert len(world.of(CopyAside)) == 2


def test_a_new_supervisor_copies_it_once_there_is_room() -> None:
    """A wait of this kind did not go on after a restart of the supervisor."""
    world = crash(torn_run().answer("copy_aside", ok=False, detail="the disk has 0.10 GB free", no_room=True))
    assert "the disk has 0.10 GB free" in world.of(NotifyPeople)[-1].body

    later = from_journal(world, to_snapshot(world.state))
    later = later.answer("copy_aside", folder="/runs/out.kept/1").begin().wait(3600.0, every_s=60.0)

    assert [type(e) for _, e in later.entries if isinstance(e, CopyAside | StartAttempt)] == [CopyAside, StartAttempt]


def test_if_it_cannot_be_copied_the_run_is_held_and_says_what_can_be_done() -> None:
    world = crash(torn_run().answer("copy_aside", ok=False, detail="out/last.pt: Permission denied"))

    assert is_held(world)
    assert world.why == Why("not_copied")
    said = world.of(NotifyPeople)[-1].body
    assert "last.pt cannot be copied aside: out/last.pt: Permission denied" in said
    assert "resume --fresh` begins anew without a copy" in said.replace("  ", " ")
    assert "--from out/last.pt" in said
    world = world.command("resume", fresh=True).wait(1.0)
    assert (len(world.of(StartAttempt)), len(world.of(CopyAside))) == (2, 1), "who begins anew was asked already"


@pytest.mark.parametrize("others", [(), ("out/step-40.pt",)])
def test_one_that_is_removed_meanwhile_leaves_the_others_to_be_copied(others: tuple[str, ...]) -> None:
    world = torn_run().answer("copy_aside", ok=False, detail="no such file", gone=LAST)
    for path in others:
        cut(world, path)
    world = crash(world.answer("copy_aside", folder="/runs/out.kept/1"))

    assert [order.paths for order in world.of(CopyAside)] == [(LAST, *others), *filter(None, [others])]
    assert (len(world.of(StartAttempt)), bool(kept(world))) == (2, bool(others))


def test_a_wait_before_the_launch_comes_first() -> None:
    world = crash(torn_run(backoff_s=(60.0,)))
    assert not world.of(CopyAside)

    world = world.wait(90.0)

    acts = [type(e) for _, e in world.entries if isinstance(e, CopyAside | StartAttempt | ListCheckpoints)]
    assert acts[-2:] == [CopyAside, StartAttempt]


@pytest.mark.parametrize(("found_by_itself", "copied"), [(False, {"out/last.q7", LAST}), (True, {LAST})])
def test_what_is_not_understood_is_copied_with_what_is_damaged(found_by_itself: bool, copied: set[str]) -> None:
    setting = {"if_not_told": "go_on"} if found_by_itself else {"if_not_understood": "copy_and_restart"}
    world = at_step(cut(at_step(run_of(GENERIC, NOWHERE, **setting), 30)), 60)
    world = crash(unknown(world, "last.q7").answer("copy_aside", folder="/runs/out.kept/1"))

    assert [set(order.paths) for order in world.of(CopyAside)] == [copied]
    assert len(world.of(StartAttempt)) == 2
    assert {k.path for k in world.state.saved.checkpoints.known if k.kept == "/runs/out.kept/1"} == copied


def test_after_a_nan_that_leaves_nothing_what_was_saved_since_then_is_copied() -> None:
    world = at_step(run_of(GENERIC, ANYWHERE), 30)
    world = crash(cut(world, "out/step-30.pt", verdict="nonfinite", event="complete"))

    assert [order.paths for order in world.of(CopyAside)] == [("out/step-30.pt",)]


def test_the_newest_names_of_several_are_told() -> None:
    world = at_step(run_of(GENERIC, ANYWHERE), 30)
    for number in range(4):
        cut(world, f"out/step-{number}.pt")
    world = crash(world.answer("copy_aside", folder="/runs/out.kept/1"))

    assert len(world.of(CopyAside)[0].paths) == 4
    assert kept(world) == [
        (
            "kept copies of step-1.pt, step-2.pt, step-3.pt and 1 more in /runs/out.kept/1 before the run began anew; "
            "delete them if not needed"
        )
    ]


def test_one_that_is_removed_while_it_is_copied_is_not_told_of() -> None:
    world = torn_run()
    world.silent = {"copy_aside"}
    crash(world)
    (order,) = world.of(CopyAside)
    world.see(CheckpointEvent(t=world.t, path=LAST, event="removed"))
    data = {"folder": "/runs/out.kept/1"}
    world.see(Outcome(t=world.t, decision=order.id, action="copy_aside", ok=True, detail="", data=data))

    assert not kept(world)
    assert len(world.of(StartAttempt)) == 2
