"""What follows from a state of a run follows from its value in the journal, not from the words of its reason."""

import json
from pathlib import Path
from typing import Any, get_args

import pytest

from tests.fakes.feed import WALL0, created, started, training
from tests.unit.test_views_header import incident
from trainwatch.cli import main
from trainwatch.core.model.fact import HealthChanged, IncidentOpened, StateChanged
from trainwatch.core.model.progress import PLAIN, HoldKind, Why
from trainwatch.core.model.run import RunSpec, RunState
from trainwatch.core.store.journal import JournalWriter
from trainwatch.core.store.lock import SupervisorLock
from trainwatch.core.store.run_directory import RunDirectory

REASON = "SENTENCE"
UNCLEAR = incident(31, "checkpoint", "not_understood", "out/step-40 may be of this run")


class Verbs:
    """A run on disk, and the verbs that read it."""

    def __init__(self, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
        spec = RunSpec(id="luca-1a2b3c4d", name="luca", command=("python", "t.py"), cwd=str(home), created_wall=WALL0)
        self.run = RunDirectory.create(home, spec)
        self._capsys = capsys

    def write(self, state: RunState, why: Why, reason: str = REASON, *more: Any) -> None:
        with JournalWriter(self.run.journal) as journal:
            for t, facts in ((0.0, created()), (1.0, started(1)), (90.0, training(1, 1))):
                journal.append_all(t, WALL0 + t, facts)
            journal.append_all(100.0, WALL0 + 100.0, (*more, StateChanged(state=state, reason=reason, why=why)))

    def reword(self, to: str) -> None:
        """Change the sentence by hand."""
        self.run.journal.write_bytes(self.run.journal.read_bytes().replace(REASON.encode(), to.encode()))

    def say(self, *words: str) -> tuple[int, str]:
        with SupervisorLock(self.run.lock):
            code = main([*words, "luca"])
        return code, self._capsys.readouterr().out

    def object(self, *words: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.say(*words, "--json")[1])
        return found

    def report(self) -> dict[str, Any]:
        """Without what nobody answers on the socket of a supervisor for."""
        found = self.object("report")
        found["needs"] = [need for need in found["needs"] if need["kind"] != "frozen"]
        return found


@pytest.fixture
def verbs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Verbs:
    monkeypatch.setenv("TRAINWATCH_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return Verbs(tmp_path, capsys)


REWORDED = ("it waits", "held: the disk is full; it is launched again in 30 s", "stopped by a person", "")


@pytest.mark.parametrize("kind", get_args(HoldKind))
def test_a_hold_of_each_kind_needs_a_person_whatever_its_sentence_is(verbs: Verbs, kind: HoldKind) -> None:
    verbs.write("backing_off", Why(kind))
    before = verbs.object("status")
    assert before["hold"] == {"kind": kind}
    assert [need["kind"] for need in verbs.report()["needs"]] == ["held"]
    for reason in REWORDED:
        verbs.reword(reason)
        assert verbs.say("status", "--exit-code")[0] == 6
        assert verbs.object("status")["hold"] == before["hold"]
        assert [need["kind"] for need in verbs.report()["needs"]] == ["held"]


@pytest.mark.parametrize("reason", REWORDED)
def test_a_sentence_alone_holds_nothing(verbs: Verbs, reason: str) -> None:
    verbs.write("backing_off", PLAIN, reason)
    assert verbs.object("status")["hold"] is None
    assert verbs.say("status", "--exit-code")[0] == 7
    assert verbs.report()["needs"] == []


@pytest.mark.parametrize(
    ("state", "kind", "reason", "needs"),
    [
        ("stopped", "refused_checkpoint", "/mnt/disk1/out/step-40 cannot be resumed from", ["held", "disk"]),
        ("stopped", "refused_checkpoint", "/mnt/ssd1/out/step-40 cannot be resumed from", ["held", "disk"]),
        ("backing_off", "disk_full", "no room", ["held"]),
    ],
)
def test_a_full_disk_is_told_once_whatever_the_folder_of_a_checkpoint_is_called(
    verbs: Verbs, state: Any, kind: Any, reason: str, needs: list[str]
) -> None:
    low = HealthChanged(metric="disk_free", value=4e8, unit="B", level="danger", before="safe")
    verbs.write(state, Why(kind), reason, low)
    assert [need["kind"] for need in verbs.report()["needs"]] == needs


def test_a_stop_by_a_person_is_no_decision_that_is_missing(verbs: Verbs) -> None:
    verbs.write("stopped", Why("person"), "stopped by command line; held until resume or restart")
    made = verbs.report()
    assert made["summary"].endswith("nothing needs your decision.")
    assert [(need["kind"], need["urgent"]) for need in made["needs"]] == [("stopped", False)]
    short = verbs.say("report", "--short")[1]
    assert "You stopped it at " in short
    assert "needs you:" not in short
    assert verbs.say("status", "--exit-code")[0] == 6


def test_what_a_run_is_held_for_is_told_once(verbs: Verbs) -> None:
    verbs.write("stopped", Why("unclear_output", UNCLEAR.id), REASON, IncidentOpened(incident=UNCLEAR))
    assert [need["kind"] for need in verbs.report()["needs"]] == ["held"]
    assert verbs.say("report", "--short")[1].count(UNCLEAR.reason) == 0


def test_an_end_without_proof_stays_one_when_its_sentence_changes(verbs: Verbs) -> None:
    verbs.write("finished", Why("unproven"))
    for reason in ("exit 0", "the training is done"):
        verbs.reword(reason)
        assert "nothing in the log says that this was the end" in verbs.object("report")["summary"]
