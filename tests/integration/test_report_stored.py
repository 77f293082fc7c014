"""A report is the same whatever is stored beside the journal, and whenever it was stored."""

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.fakes.feed import CRASH, WALL0, created, started, told_records
from trainwatch.core.app.runs.report import gather
from trainwatch.core.model.checkpoint import Checkpoint
from trainwatch.core.model.decision import Decision, NotifyPeople, StartAttempt, StopAttempt
from trainwatch.core.model.fact import (
    CheckpointKnown,
    CommandReceived,
    Fact,
    IncidentOpened,
    Note,
    RampMoved,
    StateChanged,
)
from trainwatch.core.model.observation import Outcome
from trainwatch.core.model.run import RunSpec
from trainwatch.core.model.story import RunStory
from trainwatch.core.model.story_fold import apply_all
from trainwatch.core.store import journal
from trainwatch.core.store.journal import NAME, JournalWriter, read_journal, read_stored
from trainwatch.core.store.run_directory import RunDirectory
from trainwatch.core.views.report import CHECKPOINTS_SHOWN
from trainwatch.core.views.report_building import build_report, short_report
from trainwatch.core.views.report_pages import markdown

SPEC = RunSpec(id="luca-1a2b3c4d", name="luca", command=("python", "t.py"), cwd="/", created_wall=WALL0)
Body = Fact | Decision | Outcome


@pytest.fixture(autouse=True)
def _each_record_is_worth_storing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "WORTH_BYTES", 0)


def checkpoint(number: int) -> CheckpointKnown:
    known = Checkpoint(
        path=f"/out/c-{number}", name=f"c-{number}", kind="directory", step=number, epoch=None, size_bytes=1,
        mtime=WALL0 + number, verdict="complete",
    )  # fmt: skip
    return CheckpointKnown(checkpoint=known)


def stopped(decision: int, *, ok: bool) -> Outcome:
    return Outcome(t=0.0, decision=decision, action="stop_attempt", ok=ok, detail=f"detail {decision}")


EVENTS: tuple[tuple[Body, ...], ...] = (
    (*created(), *started(1), *map(checkpoint, range(150))),
    (IncidentOpened(incident=CRASH), StopAttempt(id=1, reason="end it", incident=CRASH.id, attempt=1)),
    (NotifyPeople(id=2, reason="tell", incident=CRASH.id, event="incident", title="crash"), stopped(2, ok=True)),
    (stopped(1, ok=False), CommandReceived(verb="profile", by="luca", detail="conservative")),
    (RampMoved(direction="up", before="a", after="b", why="no trouble"), CommandReceived(verb="ack", by="luca")),
    (StartAttempt(id=3, reason="start attempt 2", incident=CRASH.id, attempt=2),),
    (*map(checkpoint, range(150, 200)), stopped(3, ok=True), *started(2)),
    (StateChanged(state="given_up", reason="it does not go away"),),
)


def append(run: RunDirectory, turn: int) -> None:
    with JournalWriter(run.journal) as writer:
        writer.append_all(1000.0 + turn, WALL0 + 1000.0 + turn, EVENTS[turn])


def texts(run: RunDirectory) -> tuple[str, ...]:
    """Each form of the report, of what is stored and what came after."""
    full, short = (build_report(*gather(run, log_ends=log_ends)) for log_ends in (True, False))
    return markdown(full), short_report(short)


def expected(run: RunDirectory) -> tuple[str, ...]:
    """The same of the records themselves."""
    records = list(read_journal(run.journal))
    now, sources = gather(run)
    story = apply_all(RunStory(), records)
    report = build_report(replace(now, story=story), replace(sources, particulars=told_records(records)))
    return markdown(report), short_report(report)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunDirectory:
    monkeypatch.setattr("time.time", lambda: WALL0 + 5000.0)
    monkeypatch.setattr("trainwatch.core.app.runs.supervisor_life.as_found", lambda _run, story: story)
    return RunDirectory.create(tmp_path / "home", SPEC)


def remove(path: Path) -> None:
    path.unlink(missing_ok=True)


def damage(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-9])


def keep(_path: Path) -> None:
    pass


def test_report_after_each_record_is_that_of_all_records(run: RunDirectory) -> None:
    for turn in range(len(EVENTS)):
        append(run, turn)
        assert texts(run) == expected(run)
    told = texts(run)[0]
    assert "end it (failed: detail 1)" in told
    assert "start attempt 2: detail 3" in told
    assert "tell" not in told
    assert "luca: profile (conservative)" in told
    assert "ramp up: a → b (no trouble)" in told
    assert "200 complete" in told
    assert f"… and {200 - CHECKPOINTS_SHOWN} older ones." in told
    assert read_stored(run.journal).seq > 0, "the report is of what is stored"


@pytest.mark.parametrize("spoil", [remove, damage, cut, keep])
@pytest.mark.parametrize("stored_at", [0, 2, 3, 6])
def test_report_does_not_depend_on_what_is_stored(
    run: RunDirectory, spoil: Callable[[Path], None], stored_at: int
) -> None:
    for turn in range(len(EVENTS)):
        append(run, turn)
        if turn == stored_at:
            texts(run)
            spoil(run.journal.with_name(NAME))
    assert texts(run) == expected(run)


def test_report_of_a_story_that_other_code_stored(run: RunDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    for turn in range(4):
        append(run, turn)
    with monkeypatch.context() as before:
        before.setattr(journal, "_fold", lambda: 1)
        texts(run)
    for turn in range(4, len(EVENTS)):
        append(run, turn)
    assert texts(run) == expected(run)
    assert read_stored(run.journal).told


def test_a_command_that_was_refused_has_changed_nothing(run: RunDirectory) -> None:
    """Before: ``changed: luca: resume`` of a resume of a run that goes on."""
    append(run, 0)
    asked = [CommandReceived(verb=verb, by="luca") for verb in ("pause", "resume", "ack")]
    refused = Note(text="resume: it is running (attempt 1)", about="refusal")
    with JournalWriter(run.journal) as writer:
        writer.append_all(1000.0, WALL0 + 1000.0, (*asked[:2], refused, asked[2]))
    for told in texts(run):
        assert [verb for verb in ("pause", "resume", "ack") if f"luca: {verb}" in told] == ["pause", "ack"]
