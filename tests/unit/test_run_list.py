"""The list of runs: order, choice, columns; and two runs compared."""

import json
from pathlib import Path

import msgspec
import pytest

from tests.fakes.feed import empty, finished, given_up, healthy, unwatched
from tests.unit.test_views_header import NAN, with_incidents
from trainwatch.core.act.launch import spool
from trainwatch.core.app.screen.run_cards import card_of, hide, run_cards
from trainwatch.core.app.screen.run_looks import options, settings_of
from trainwatch.core.app.screen.run_picker import MachineRuns
from trainwatch.core.model.attempt import LaunchOrder
from trainwatch.core.model.run import RunSpec
from trainwatch.core.model.situation import RunCard, RunSettings, Situation
from trainwatch.core.model.trial import EntryState, QueueEntry
from trainwatch.core.store.lists import QueueFile
from trainwatch.core.store.run_directory import RunDirectory
from trainwatch.core.views.screens.profiles import compare_runs, comparison_markdown
from trainwatch.core.views.screens.run_list import (
    SORTS,
    end_text,
    gpu_text,
    listed,
    loss_text,
    run_row,
    shown_name,
    speed_text,
    trouble_text,
    with_situation,
)
from trainwatch.tui.screens.runs_screen import about_run

replace = msgspec.structs.replace


def card(name: str, now: Situation | None = None, **more: object) -> RunCard:
    fields = {"id": f"{name}-1", "name": name, "state": "idle", "watched": True, "created_wall": 0.0}
    made = msgspec.convert(fields | more, RunCard)
    return made if now is None else with_situation(made, now)


def test_a_row_says_what_is_wrong_and_how_far_it_is() -> None:
    now = with_incidents(healthy(), NAN)
    row = run_row(card("luca", now), now.now_wall)
    assert row.level == "danger"
    assert trouble_text(row).startswith("Loss is NaN since step 100")
    assert loss_text(row) == "NaN"
    assert speed_text(row) == "2.50 s/step"
    assert end_text(row).startswith("done ")
    assert gpu_text(row).startswith("0: ")
    fine = run_row(card("luca", healthy()), now.now_wall)
    assert (fine.level, fine.card.trouble) == ("safe", "")


@pytest.mark.parametrize(("now", "label"), [(healthy(), "done"), (finished(), "ended")])
def test_the_time_of_an_end_says_whether_it_has_come(now: Situation, label: str) -> None:
    rows = about_run(run_row(card("luca", now), now.now_wall))
    told = {row.label: row.text for row in rows}
    assert ":" in told[label], told
    assert ":" not in told["speed"]
    assert not {"done", "ended"} - {label} & told.keys()


def test_a_finished_run_whose_loss_was_nan_is_no_green_row() -> None:
    now = finished()
    closed = replace(NAN, attempt=2, open=False, closed_t=now.story.state_t, ended_by="attempt")
    row = run_row(card("luca", with_incidents(now, closed), watched=False), now.now_wall)
    assert row.level == "danger"


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
    assert end_text(row)
    assert "done" not in end_text(row)
    assert gpu_text(row) == ""
    assert end_text(run_row(card("luca", empty()), 0.0)) == ""


def test_of_a_machine_that_does_not_answer_no_end_is_promised() -> None:
    seen = card("luca", healthy(), host="box1")
    lost = replace(seen, no_answer="box1: no answer; as of 2 min ago")
    assert end_text(run_row(seen, 0.0)).startswith("done ")
    assert end_text(run_row(lost, 0.0)) == ""
    assert trouble_text(run_row(lost, 0.0)) == "box1: no answer; as of 2 min ago"
    assert (run_row(lost, 0.0).level, run_row(lost, 0.0).state_word) == ("unknown", "was running")
    assert shown_name(replace(seen, cwd="/w")) == "box1: luca"
    assert listed([seen], words="box1") == (seen,)


CARDS = (
    card("luca", healthy(), cwd="/w/sdxl", created_wall=3.0),
    card("mira", given_up(), watched=False, cwd="/w/llm", created_wall=2.0),
    card("old", finished(), watched=False, cwd="/w/sdxl", created_wall=1.0, command=["python", "fine.py"]),
    card("hid", finished(), watched=False, hidden=True),
    card("lone", unwatched(), watched=False),
)


def names(cards: tuple[RunCard, ...]) -> list[str]:
    return [each.name for each in cards]


def test_entries_of_the_queue_are_rows_that_are_no_runs_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINWATCH_HOME", str(tmp_path))
    states: tuple[tuple[int, EntryState], ...] = ((3, "queued"), (4, "started"), (5, "queued"))
    entries = tuple(
        QueueEntry(
            id=n, key=str(n), name=f"e{n}", cwd="/x", added_wall=1.0, command=("x",), why="GPU 0: full", state=state
        )
        for n, state in states
    )
    QueueFile(tmp_path).update(lambda queue: replace(queue, entries=entries))
    rows = [run_row(each, 10.0) for each in run_cards()]
    assert [(row.card.name, row.state, row.level) for row in rows] == [
        ("e3", "queued, next", "unknown"), ("e5", "queued, place 2", "unknown"),
    ]  # fmt: skip
    assert trouble_text(rows[0]) == "GPU 0: full"
    assert [each.name for each in listed(run_cards(), words="queued e5")] == ["e5"]
    assert [listed(run_cards(), which=which) for which in ("live", "wrong", "over")] == [(), (), ()]
    with pytest.raises(RuntimeError, match="entry 3 waits in the queue"):
        MachineRuns().open("queue:3")
    (tmp_path / "queue" / "queue.json").write_text("{")
    assert run_cards() == []


def test_hidden_runs_are_left_out_until_asked_for() -> None:
    assert names(listed(CARDS)) == ["luca", "mira", "old", "lone"]
    assert "hid" in names(listed(CARDS, hidden=True))


def test_runs_are_filtered_and_searched() -> None:
    assert names(listed(CARDS, which="live")) == ["luca", "lone"]
    assert set(names(listed(CARDS, which="wrong"))) == {"mira", "lone"}
    assert names(listed(CARDS, which="over")) == ["mira", "old"]
    assert names(listed(CARDS, words="sdxl")) == ["luca", "old"]
    assert names(listed(CARDS, words="SDXL fine.py")) == ["old"]
    assert listed(CARDS, words="nothing") == ()


def test_each_order_keeps_every_run_and_puts_the_unknown_last() -> None:
    for sort in SORTS:
        assert sorted(names(listed(CARDS, sort=sort))) == ["lone", "luca", "mira", "old"]
    assert names(listed(CARDS, sort="worst"))[0] == "mira"
    assert names(listed(CARDS, sort="name")) == ["lone", "luca", "mira", "old"]
    assert names(listed((card("none"), CARDS[0]), sort="loss")) == ["luca", "none"]
    assert names(listed((card("none"), CARDS[0]), sort="end")) == ["luca", "none"]


def test_two_runs_differ_in_settings_and_results() -> None:
    of_a = RunSettings(run_id="a", name="luca", values={"lr": "1e-4", "seed": "1", "fp16": "on"})
    of_b = RunSettings(run_id="b", name="mira", values={"lr": "5e-5", "seed": "1", "ema": "on"})
    found = compare_runs(CARDS[0], CARDS[1], of_a, of_b)
    assert [(v.name, v.first, v.second) for v in found.settings] == [
        ("lr", "1e-4", "5e-5"), ("fp16", "on", "not set"), ("ema", "not set", "on"),
    ]  # fmt: skip
    assert found.same == 1
    assert ("state", "running", "given up") in [(v.name, v.first, v.second) for v in found.results]
    assert "| lr | 1e-4 | 5e-5 |" in comparison_markdown(found)
    assert compare_runs(CARDS[0], CARDS[0], of_a, of_a).first == "luca-1"  # the names do not tell them apart


def test_a_path_of_a_config_is_no_setting_that_differs(tmp_path: Path) -> None:
    """Each launch has a derived copy of its own: before, two runs with equal settings differed in one."""
    found = []
    for name, rate in (("a", "1e-4"), ("b", "1e-4"), ("c", "5e-5")):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "own.toml").write_text(f"lr = {rate}\n")
        spec = RunSpec(
            id=f"{name}-1", name=name, command=("python", "t.py", "--config", "own.toml"), cwd=str(folder),
            created_wall=1.0, config=str(folder / "own.toml"),
        )  # fmt: skip
        found.append(settings_of(RunDirectory.create(tmp_path / "home", spec), spec))
    same = compare_runs(CARDS[0], CARDS[1], found[0], found[1])
    assert [v.name for v in same.settings] == ["working folder"]
    assert not same.files, "both command lines name own.toml"
    other = compare_runs(CARDS[0], CARDS[1], found[0], found[2])
    assert [v.name for v in other.settings] == ["working folder", "lr (config)"]
    elsewhere = msgspec.structs.replace(found[1], values={**found[1].values, "config": "/b/own.toml"})
    (path,) = compare_runs(CARDS[0], CARDS[1], found[0], elsewhere).files
    assert (path.name, path.first, path.second) == ("config (path)", "own.toml", "/b/own.toml")
    unread = msgspec.structs.replace(elsewhere, config_paths=frozenset())
    assert "config" in [v.name for v in compare_runs(CARDS[0], CARDS[1], found[0], unread).settings]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("python", "t.py", "--lr", "1e-4"), {"word 1": "python", "word 2": "t.py", "lr": "1e-4"}),
        (("--lr=1e-4", "--fp16", "--seed", "-1"), {"lr": "1e-4", "fp16": "on", "seed": "-1"}),
        (("model.depth=12", "+trainer.lr=1"), {"model.depth": "12", "trainer.lr": "1"}),
        (("--flag",), {"flag": "on"}),
    ],
)
def test_options_of_a_command_have_names(words: tuple[str, ...], expected: dict[str, str]) -> None:
    assert dict(options(words)) == expected


def test_settings_are_those_of_the_newest_launch_and_hold_no_secret(tmp_path: Path) -> None:
    config = tmp_path / "own.toml"
    config.write_text("lr = 1e-4\n[vae]\ntiling = true\n")
    spec = RunSpec(
        id="luca-1", name="luca", command=("python", "t.py", "{config}"), cwd=str(tmp_path), created_wall=1.0,
        config=str(config), env={"HF_TOKEN": "hf_SecretSecretSecret", "OMP_NUM_THREADS": "4"},
    )  # fmt: skip
    run = RunDirectory.create(tmp_path / "home", spec)
    before = settings_of(run, spec).values
    assert before["vae.tiling (config)"] == "True"
    folder = run.attempt(1)
    folder.mkdir(parents=True)
    derived = folder / "own.toml"
    derived.write_text("lr = 5e-5\n")
    argv = ("python", "t.py", str(derived), "--batch", "2", "--api_key", "abcdef1234567890")
    order = LaunchOrder(attempt=1, argv=argv, cwd=spec.cwd, env={}, log=str(folder / "train.log"))
    (folder / spool.ORDER).write_bytes(msgspec.json.encode(order))
    values = settings_of(run, spec).values
    assert values["lr (config)"] == "5e-05"
    assert values["batch"] == "2"
    assert values["$OMP_NUM_THREADS"] == "4"
    assert "hf_SecretSecretSecret" not in json.dumps(dict(values))
    assert "abcdef1234567890" not in json.dumps(dict(values))


def test_a_run_is_hidden_by_a_mark_in_its_folder(tmp_path: Path) -> None:
    spec = RunSpec(id="luca-1", name="luca", command=("x",), cwd="/w", created_wall=1.0)
    run = RunDirectory.create(tmp_path / "home", spec)
    assert not card_of(run).hidden
    hide(run, True)
    hide(run, True)
    assert card_of(run).hidden
    hide(run, False)
    hide(run, False)
    assert not card_of(run).hidden
