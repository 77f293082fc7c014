"""An outline says the same of a run as its whole story, whatever happens to the checkpoints that it leaves out."""

import random
from pathlib import Path
from typing import Any

import pytest

from trainwatch.core.app.screen.store_feed import StoreFeed
from trainwatch.core.model.checkpoints import left_out
from trainwatch.core.model.checkpoints.checkpoint import Checkpoint, Verdict
from trainwatch.core.model.checkpoints.evaluation import Evaluation
from trainwatch.core.model.fact import (
    AttemptStarted,
    CheckpointEvaluated,
    CheckpointKnown,
    IncidentOpened,
    IncidentUpdated,
    JudgeSnapshot,
    RunCreated,
    StateChanged,
)
from trainwatch.core.model.incident import Incident
from trainwatch.core.model.record import Entry
from trainwatch.core.model.run import RunSpec
from trainwatch.core.model.situation import Situation
from trainwatch.core.model.story import RunStory
from trainwatch.core.store.journal import (
    JournalWriter,
    fold_outline,
    latest_snapshot,
    load_outline,
    load_story,
    outline,
    read_journal,
    stored_story,
)
from trainwatch.core.store.journal.stored_story import NAME, OUTLINE, read_stored
from trainwatch.core.store.run_directory import RunDirectory
from trainwatch.core.views.report import report_rows
from trainwatch.core.views.report.markdown_report import markdown
from trainwatch.core.views.report.open_decisions import needs
from trainwatch.core.views.report.report import ReportSources
from trainwatch.core.views.report.report_building import build_report
from trainwatch.core.views.state.status import status_object
from trainwatch.core.views.state.verdict import verdict

WALL0 = 1_700_000_000.0
CREATED = RunCreated(run="r-1", name="r", command=("x",), cwd="/", preset="generic", max_restarts=3)


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few checkpoints are many, and each record is worth storing."""
    monkeypatch.setattr(left_out, "NEWEST", 3)
    monkeypatch.setattr(left_out, "FEWEST", 2)
    monkeypatch.setattr(report_rows, "CHECKPOINTS_SHOWN", 2)
    for module in (stored_story, outline):
        monkeypatch.setattr(module, "WORTH_BYTES", 0)


def checkpoint(number: int, mtime: float, verdict: Verdict = "complete", *, understood: bool = True) -> Checkpoint:
    return Checkpoint(
        path=f"/out/c-{number}", name=f"c-{number}", kind="directory", step=number, epoch=None, size_bytes=1,
        mtime=mtime, verdict=verdict, understood=understood,
    )  # fmt: skip


def said(story: RunStory) -> Any:
    """All that a run's state, its verdict, its list of what needs a person and its report say."""
    now = Situation(story=story, now_t=story.t + 60.0, now_wall=WALL0 + story.t + 60.0, supervisor_alive=True)
    status = status_object(
        story, run="r", wall=now.now_wall, gpu=None, host=None, progress=None, step_t=None
    )  # fmt: skip
    spec = RunSpec(id="r-1", name="r", command=("x",), cwd="/", created_wall=WALL0)
    return status, verdict(now), tuple(needs(now)), markdown(build_report(now, ReportSources(spec=spec)))


def append(path: Path, t: float, *entries: Entry) -> None:
    with JournalWriter(path) as writer:
        writer.append_all(t, WALL0 + t, entries)


def nan(number: int, t: float, **changed: Any) -> Incident:
    fields: dict[str, Any] = {"kind": "loss", "class_": "nan_loss", "reason": "the loss is NaN", "step": 5} | changed
    return Incident(id=number, t=t, wall=WALL0 + t, attempt=1, **fields)


@pytest.mark.parametrize("seed", range(4))
def test_outline_and_whole_story_say_the_same(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    journal, there, number = tmp_path / "journal.jsonl", list[int](), 0
    append(journal, 0.0, CREATED, AttemptStarted(attempt=1, pid=7), StateChanged(state="running", reason="step 1"))
    opened: Incident | None = None
    shortened = 0
    for turn in range(1, 70):
        t = float(turn)
        kind = dice.choices(("new", "gone", "again", "bad", "score", "nan", "end"), (60, 8, 4, 4, 4, 3, 3))[0]
        if kind in {"new", "bad"} or not there:
            number += 1
            there.append(number)
            verdict_now: Verdict = dice.choice(("torn", "opaque")) if kind == "bad" else "complete"
            known = checkpoint(number, WALL0 + t, verdict_now, understood=verdict_now != "opaque")
            append(journal, t, CheckpointKnown(checkpoint=known))
        elif kind == "gone":
            gone = there.pop(dice.randrange(len(there)))
            append(journal, t, CheckpointKnown(checkpoint=checkpoint(gone, WALL0 + gone), removed=True))
        elif kind == "again":
            append(journal, t, CheckpointKnown(checkpoint=checkpoint(dice.choice(there), WALL0 + t)))
        elif kind == "score":
            known = dice.choice(load_story(journal).checkpoints)
            scored = Evaluation(path=known.path, mtime=known.mtime, metric="fid", score=dice.random(), better="lower")
            append(journal, t, CheckpointEvaluated(evaluation=scored))
        elif kind == "nan" and opened is None:
            opened = nan(turn, t)
            append(journal, t, IncidentOpened(incident=opened))
        elif opened is not None:
            append(journal, t, IncidentUpdated(incident=nan(opened.id, opened.t, open=False, ending="finite again")))
            opened = None
        else:
            append(journal, t, StateChanged(state=dice.choice(("running", "finished", "stopped")), reason="so"))
        short, whole = load_outline(journal), load_story(journal)
        assert said(short) == said(whole), (turn, kind)
        assert len(short.checkpoints) + short.left_out == len(whole.checkpoints) == len(there)
        shortened += short.left_out > 0
    assert shortened > 10


def test_outline_of_many_checkpoints_is_short_and_read_by_itself(tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    append(journal, 0.0, CREATED, *(CheckpointKnown(checkpoint=checkpoint(n, WALL0 + n)) for n in range(50)))
    append(journal, 60.0, JudgeSnapshot(version=3, state={"number": 1}))
    load_outline(journal)
    assert read_stored(journal, OUTLINE).offset == journal.stat().st_size
    journal.with_name(NAME).write_bytes(b"")  # the whole story is not needed
    append(journal, 61.0, CheckpointKnown(checkpoint=checkpoint(50, WALL0 + 61.0)))
    short = fold_outline(journal)
    assert (short.story.left_out, len(short.story.checkpoints)) == (47, 4)
    assert journal.with_name(NAME).read_bytes() == b""
    snapshot = latest_snapshot(journal)
    assert snapshot is not None
    assert snapshot.state == {"number": 1}
    with JournalWriter(journal) as writer:
        assert writer.seq == short.seq == len(list(read_journal(journal)))


def test_a_record_of_a_checkpoint_that_is_left_out_needs_the_whole_story(tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    append(journal, 0.0, CREATED, *(CheckpointKnown(checkpoint=checkpoint(n, WALL0 + n)) for n in range(50)))
    load_outline(journal)
    append(journal, 61.0, CheckpointKnown(checkpoint=checkpoint(2, WALL0 + 2, "torn")))
    story = load_outline(journal)
    assert len(story.checkpoints) + story.left_out == 50
    assert [c.verdict for c in story.checkpoints if c.path == "/out/c-2"] == ["torn"]


def test_an_outline_that_names_too_few_of_the_newest_checkpoints_needs_the_whole_story(tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    append(journal, 0.0, CREATED, *(CheckpointKnown(checkpoint=checkpoint(n, WALL0 + n)) for n in range(50)))
    load_outline(journal)
    for gone in (49, 48, 47):
        append(journal, 60.0, CheckpointKnown(checkpoint=checkpoint(gone, WALL0 + gone), removed=True))
        assert [c.step for c in load_outline(journal).checkpoints[-2:]] == [gone - 2, gone - 1]
    old = [CheckpointKnown(checkpoint=checkpoint(100 + n, WALL0 - n)) for n in range(5)]
    append(journal, 61.0, *old, CheckpointKnown(checkpoint=checkpoint(46, WALL0 + 46), removed=True))
    assert [c.step for c in load_outline(journal).checkpoints[-2:]] == [44, 45]


def test_the_first_picture_has_the_newest_checkpoints_and_the_next_all(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    append(run.journal, 0.0, CREATED, *(CheckpointKnown(checkpoint=checkpoint(n, WALL0 + n)) for n in range(50)))
    load_outline(run.journal)
    append(run.journal, 60.0, CheckpointKnown(checkpoint=checkpoint(50, WALL0 + 60.0)))
    feed = StoreFeed(run, WALL0)
    assert [c.step for c in feed.poll().story.checkpoints] == [47, 48, 49, 50]
    append(run.journal, 61.0, CheckpointKnown(checkpoint=checkpoint(51, WALL0 + 61.0)))
    assert feed.poll().story == feed.poll().story == load_story(run.journal)
