"""The newest complete checkpoint is the newest by its time of modification, not the one that was found last."""

import os
from pathlib import Path

import msgspec
import pytest

from tests.builders import World
from tests.fakes.checkpoint_layouts import safetensors_file
from tests.unit.test_judge_recovery import crash, running, save
from trainwatch.core.checkpoints.listing import list_checkpoints
from trainwatch.core.judge.resume.checkpoint_index import CheckpointIndex, with_event
from trainwatch.core.judge.resume.resume_point import newest_verified
from trainwatch.core.model.checkpoint import Checkpoint
from trainwatch.core.model.decision import Record, StartAttempt
from trainwatch.core.model.fact import CheckpointKnown, CheckpointsSetAside, Fact
from trainwatch.core.model.observation import CheckpointEvent
from trainwatch.core.model.story import RunStory, Situation
from trainwatch.core.model.story_fold import apply
from trainwatch.core.views.checkpoint_list import checkpoint_rows, resume_point
from trainwatch.core.views.state.verdict import verdict

OLD, NEW = "out/step-20", "out/step-40"


def event(t: float, path: str, step: int | None, mtime: float | None = None, size: float = 1e6) -> CheckpointEvent:
    return CheckpointEvent(t=t, path=path, event="complete", step=step, size_bytes=size, mtime=mtime)


def index(*events: CheckpointEvent) -> CheckpointIndex:
    known = CheckpointIndex()
    for each in events:
        known = with_event(known, each, position=None, created_wall=1000.0)
    return known


def newest(*events: CheckpointEvent) -> str | None:
    found = newest_verified(index(*events))
    return None if found is None else found.path


def after_a_gap(*found: CheckpointEvent) -> CheckpointIndex:
    """What a supervisor finds whose predecessor saw step 20 and watched until run time 4000."""
    known = msgspec.structs.replace(index(event(3000.0, OLD, 20, 4000.0)), looked_t=4000.0)
    for each in (event(4100.0, OLD, 20, 4000.0), *found):
        known = with_event(known, each, position=None, created_wall=1000.0)
    return known


@pytest.mark.parametrize("mtime", [500.0, 1500.0, 3900.0], ids=["before the run", "in the run", "just before"])
def test_a_checkpoint_of_a_gap_in_which_the_clock_was_set_back_is_the_newest(mtime: float) -> None:
    found = newest_verified(after_a_gap(event(4101.0, NEW, 40, mtime), event(4101.0, "out/step-60", 60, mtime + 50.0)))
    assert found is not None
    assert found.path == "out/step-60"


@pytest.mark.parametrize(
    "other",
    [
        event(4101.0, "out/step-10", 10, 1500.0),
        event(4101.0, "out/base-model-90", 90, 500.0),
        event(4101.0, "out/step-latest", None, 1500.0),
        event(4200.0, NEW, 40, 1500.0),
    ],
    ids=["a lower step", "another kind of name", "no step", "it appears long after the start"],
)
def test_an_old_file_that_appears_after_a_gap_is_not_the_newest(other: CheckpointEvent) -> None:
    found = newest_verified(after_a_gap(other))
    assert found is not None
    assert found.path == OLD


def test_a_restart_goes_on_from_the_newest_although_an_older_one_was_announced_last() -> None:
    world: World = save(save(save(running(), OLD, 20), NEW, 40), OLD, 20)
    assert crash(world).of(StartAttempt)[-1].resume_from == NEW


def test_a_new_look_at_the_folder_lists_the_newest_first_and_no_average(tmp_path: Path) -> None:
    names = ("z-000002.safetensors", "a-000004.safetensors", "ema_0.9999_000004.safetensors")
    for mtime, name in enumerate(names):
        path = safetensors_file(tmp_path).rename(tmp_path / name)
        os.utime(path, (1000.0 + mtime, 1000.0 + mtime))
    assert list_checkpoints(tmp_path).resume_point == str(tmp_path / "a-000004.safetensors")


def checkpoint(path: str, mtime: float, step: int | None = None, **more: object) -> Checkpoint:
    return Checkpoint(
        path=path, name=path, kind="directory", step=step, epoch=None, size_bytes=1, mtime=mtime,
        **({"verdict": "complete"} | more),  # type: ignore[arg-type]
    )  # fmt: skip


def story(*facts: Fact) -> RunStory:
    told = RunStory(state="backing_off")
    for seq, fact in enumerate(facts, 1):
        told = apply(told, Record(seq=seq, t=float(seq), wall=1000.0 + seq, fact=fact))
    return told


FACTS = (
    CheckpointKnown(checkpoint=checkpoint(OLD, 1100.0, 20)),
    CheckpointKnown(checkpoint=checkpoint(NEW, 1200.0, 40)),
    CheckpointKnown(checkpoint=checkpoint(OLD, 1100.0, 20)),
)


def test_a_checkpoint_that_is_set_aside_is_no_resume_point_on_any_screen() -> None:
    now = Situation(story=story(*FACTS, CheckpointsSetAside(paths=(NEW,), why="went back")), now_wall=1300.0)
    point = resume_point(now)
    assert point is not None
    assert point.path == OLD
    assert "restarting from step 20" in " ".join(verdict(now).clauses).lower()
    rows = checkpoint_rows(tuple(reversed(now.story.checkpoints)), {}, 1300.0, now.story)
    assert [(row.path, row.resume) for row in rows] == [(NEW, False), (OLD, True)]
