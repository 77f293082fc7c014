"""Journals of earlier versions stay readable (tests/fixtures/journal, files that are never rewritten)."""

import shutil
from pathlib import Path
from typing import get_args

import msgspec

from trainwatch.core.model.decision import Decision
from trainwatch.core.model.fact import Fact, Note
from trainwatch.core.store.journal import JournalWriter, latest_snapshot, load_story, read_journal

JOURNALS = Path(__file__).parent.parent / "fixtures" / "journal"

V1_KINDS = {
    "attempt_ended", "attempt_started", "budget", "checkpoint", "command", "health", "incident_opened",
    "incident_updated", "note", "phase", "profile", "progress", "run_created", "snapshot", "state_changed",
    "supervisor_ended", "supervisor_started",
    "capture_stacks", "clear_gpu", "end_watch", "give_up", "notify", "pause_attempt", "start_attempt", "stop_attempt",
    "unpause_attempt", "verify_checkpoint",
}  # fmt: skip


def tag(body: object) -> str:
    return str(type(body).__struct_config__.tag)  # type: ignore[attr-defined]


def test_journal_fixture_of_version_1_has_every_kind_and_is_read_without_loss() -> None:
    reading = read_journal(JOURNALS / "v1_every_kind.jsonl")
    records = list(reading)
    assert reading.skipped == 0
    assert [r.seq for r in records] == list(range(1, len(records) + 1))
    assert {tag(r.fact or r.decision) for r in records if r.outcome is None} == V1_KINDS
    known = {str(kind.__struct_config__.tag) for kind in (*get_args(Fact), *get_args(Decision))}
    assert known >= V1_KINDS, "a kind was renamed or removed: old journals would lose it"


def test_journal_of_version_1_gives_the_recorded_story() -> None:
    story = load_story(JOURNALS / "v1_every_kind.jsonl")
    assert story.run is not None
    assert (story.run.name, story.state, story.wall0) == ("luca", "given_up", 1_700_000_000.0)
    assert [(a.number, a.how, a.code, a.signal, a.last_step) for a in story.attempts] == [
        (1, "crashed", 1, None, 431),
        (2, "killed", None, "SIGKILL", None),
    ]
    assert story.attempts[1].resume_step == 400
    assert [c.name for c in story.checkpoints] == ["model-000004.safetensors"]
    [incident] = story.incidents
    assert (incident.class_, incident.open, incident.lost_steps, incident.evidence[0].line) == (
        "cuda_oom",
        False,
        31,
        812,
    )
    assert (story.progress.step, story.budget_used, story.budget_max) == (1, 1, 3)
    assert story.health["gpu0.temp"].level == "warning"
    snapshot = latest_snapshot(JOURNALS / "v1_every_kind.jsonl")
    assert snapshot is not None
    assert snapshot.state == {"step": 430, "nested": {"deadline_s": 90.0}}


def test_a_journal_with_power_cuts_is_read_and_continued(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    shutil.copy(JOURNALS / "v1_power_cut.jsonl", path)
    before = path.read_bytes()
    reading = read_journal(path)
    assert [r.seq for r in reading] == [*range(1, 13), 14]
    assert reading.skipped == 3
    with JournalWriter(path) as writer:
        assert writer.append(94.0, 1_700_000_094.0, fact=Note(text="on")).seq == 15
    assert path.read_bytes().startswith(before)
    assert load_story(path).notices[-2:] == ("after the power cut", "on")


def test_serialised_names_are_those_of_journal_version_1() -> None:
    first = (JOURNALS / "v1_every_kind.jsonl").read_bytes().splitlines()[0]
    assert set(msgspec.json.decode(first)) == {"v", "seq", "t", "wall", "fact"}
