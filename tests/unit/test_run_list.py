"""The list of runs: order, choice, columns; and two runs compared."""

from pathlib import Path

import msgspec
import pytest

from tests.fakes.feed import empty, finished, healthy
from tests.unit.test_views_header import NAN, with_incidents
from trainwatch.core.app.screen.run_picker import MachineRuns, card_of, run_cards
from trainwatch.core.model.launch import QueueEntry
from trainwatch.core.model.run import RunSpec
from trainwatch.core.model.story import RunCard, Situation
from trainwatch.core.store.learned import QueueFile
from trainwatch.core.store.run_directory import RunDirectory
from trainwatch.core.views.run_summary import summarise
from trainwatch.core.views.screens.run_list import RUN_COLUMNS, RunRow, listed, run_row, shown_name, with_summary
from trainwatch.tui.screens.runs_screen import about_run

replace = msgspec.structs.replace


def card(name: str, now: Situation | None = None, **more: object) -> RunCard:
    fields = {"id": f"{name}-1", "name": name, "state": "idle", "watched": True, "created_wall": 0.0}
    made = msgspec.convert(fields | more, RunCard)
    return made if now is None else with_summary(made, summarise(now), now)


def cells(row: RunRow) -> dict[str, str]:
    return {column.title: column.text(row) for column in RUN_COLUMNS}


def test_a_row_says_what_is_wrong_and_how_far_it_is() -> None:
    now = with_incidents(healthy(), NAN)
    row = run_row(card("luca", now), now.now_wall)
    assert row.level == "danger"
    told = cells(row)
    assert told["what is wrong, or was"].startswith("Loss is NaN since step 100")
    assert (told["loss"], told["speed"]) == ("NaN", "2.50 s/step")
    assert (told["end"][:5], told["GPU"][:3]) == ("done ", "0: ")
    fine = run_row(card("luca", healthy()), now.now_wall)
    assert (fine.level, fine.card.trouble) == ("safe", "")


@pytest.mark.parametrize(("now", "label"), [(healthy(), "done"), (finished(), "ended")])
def test_the_time_of_an_end_says_whether_it_has_come(now: Situation, label: str) -> None:
    rows = about_run(run_row(card("luca", now), now.now_wall))
    told = {row.label: row.text for row in rows}
    assert ":" in told[label], told
    assert ":" not in told["speed"]
    assert not {"done", "ended"} - {label} & told.keys()


def test_an_incident_of_one_word_is_told_with_what_it_is_about() -> None:
    now = healthy()
    torn = msgspec.structs.replace(NAN, kind="checkpoint", class_="torn", reason="step_40.pt: is cut off")
    assert card("luca", with_incidents(now, torn)).last_incident == "Checkpoint is torn"
    damaged = msgspec.structs.replace(torn, class_="nonfinite")
    assert card("luca", with_incidents(now, damaged)).last_incident == "Checkpoint holds NaN or Inf"
    assert card("luca", with_incidents(now, msgspec.structs.replace(NAN, class_="nan"))).last_incident == "Loss was NaN"


def test_a_run_that_ended_says_when_and_promises_no_end() -> None:
    now = finished()
    row = run_row(card("luca", now, watched=False), now.now_wall)
    assert row.card.eta_s is None
    assert cells(row)["end"]
    assert "done" not in cells(row)["end"]
    assert cells(row)["GPU"] == ""
    assert cells(run_row(card("luca", empty()), 0.0))["end"] == ""


def test_of_a_machine_that_does_not_answer_no_end_is_promised() -> None:
    seen = card("luca", healthy(), host="box1")
    lost = replace(seen, no_answer="box1: no answer; as of 2 min ago")
    assert cells(run_row(seen, 0.0))["end"].startswith("done ")
    assert cells(run_row(lost, 0.0))["end"] == ""
    assert cells(run_row(lost, 0.0))["what is wrong, or was"] == "box1: no answer; as of 2 min ago"
    assert (run_row(lost, 0.0).level, run_row(lost, 0.0).state_word) == ("unknown", "was running")
    assert shown_name(replace(seen, cwd="/w")) == "box1: luca"
    assert listed([seen], words="box1") == (seen,)


def test_entries_of_the_queue_are_rows_that_are_no_runs_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINWATCH_HOME", str(tmp_path))
    entries = [
        QueueEntry(id=n, key=str(n), name=f"e{n}", cwd="/x", added_wall=1.0, words=("--", "x"), why="GPU 0: full")
        for n in (3, 4, 5)
    ]
    entries[1] = replace(entries[1], state="started")
    QueueFile(tmp_path).update(lambda queue: replace(queue, entries=tuple(entries)))
    rows = [run_row(each, 10.0) for each in run_cards()]
    assert [(row.card.name, row.state, row.level) for row in rows] == [
        ("e3", "queued, next", "unknown"), ("e5", "queued, place 2", "unknown"),
    ]  # fmt: skip
    assert cells(rows[0])["what is wrong, or was"] == "GPU 0: full"
    assert [each.name for each in listed(run_cards(), words="queued e5")] == ["e5"]
    assert [listed(run_cards(), which=which) for which in ("live", "wrong", "over")] == [(), (), ()]
    with pytest.raises(RuntimeError, match="entry 3 waits in the queue"):
        MachineRuns().open("queue:3")
    (tmp_path / "queue" / "queue.json").write_text("{")
    assert run_cards() == []


def test_a_run_is_hidden_by_a_mark_in_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINWATCH_HOME", str(tmp_path / "home"))
    spec = RunSpec(id="luca-1", name="luca", command=("x",), cwd="/w", created_wall=1.0)
    run = RunDirectory.create(tmp_path / "home", spec)
    assert not card_of(run).hidden
    MachineRuns().hide(run.id, True)
    MachineRuns().hide(run.id, True)
    assert card_of(run).hidden
    MachineRuns().hide(run.id, False)
    MachineRuns().hide(run.id, False)
    assert not card_of(run).hidden
