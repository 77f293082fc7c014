"""Scores and ratings of checkpoints: listed, compared, kept by retention."""

import json
import os
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from trainwatch.cli import main
from trainwatch.core.app.runs.checkpoint_quality import rated_well
from trainwatch.core.app.supervise.run_output import RunRetention
from trainwatch.core.checkpoints.inspection import inspect
from trainwatch.core.checkpoints.listing import list_checkpoints
from trainwatch.core.model.checkpoint import Evaluation
from trainwatch.core.model.fact import CheckpointEvaluated, CheckpointKnown, CheckpointsSetAside, Fact, RunCreated
from trainwatch.core.model.run import RunSpec
from trainwatch.core.model.story import RunStory, Situation
from trainwatch.core.store.journal import JournalWriter, load_story
from trainwatch.core.store.run_directory import RunDirectory
from trainwatch.core.views.checkpoint_list import checkpoint_rows, checkpoint_views
from trainwatch.core.views.screens.checkpoint_details import checkpoint_facts
from trainwatch.core.views.state import status
from trainwatch.core.views.timeline import timeline_view


class Place:
    """A run with three checkpoints, of which some have a score."""

    def __init__(self, folder: Path, scores: dict[int, float | None]) -> None:
        self.out = folder / "out"
        self.out.mkdir()
        self.home = folder / "home"
        spec = RunSpec(
            id="luca-1", name="luca", command=("x",), cwd=str(folder), created_wall=1000.0, output_dir=str(self.out)
        )
        self.run = RunDirectory.create(self.home, spec)
        header = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
        facts: list[Any] = [RunCreated(run="luca-1", name="luca", command=("x",), cwd="/", preset="generic")]
        for step in (10, 20, 30):
            path = self.path(step)
            path.write_bytes(len(header).to_bytes(8, "little") + header + b"\0\0\0\0")
            os.utime(path, (2000.0 + step, 2000.0 + step))
            found = inspect(path)
            assert found is not None
            facts.append(CheckpointKnown(checkpoint=found))
            if step in scores:
                score = scores[step]
                evaluation = Evaluation(
                    path=str(path), mtime=found.mtime, step=step, metric="fid", score=score, better="lower",
                    why="" if score is not None else "it printed NaN as fid", place="CPU",
                    values={} if score is None else {"fid": score},
                )  # fmt: skip
                facts.append(CheckpointEvaluated(evaluation=evaluation))
        writer = JournalWriter(self.run.journal)
        writer.append_all(5.0, 1005.0, facts)
        writer.close()

    def path(self, step: int) -> Path:
        return self.out / f"net-step{step:06d}.safetensors"

    def story(self) -> RunStory:
        return load_story(self.run.journal)


@pytest.fixture
def place(folder: Path) -> Place:
    return Place(folder, {10: 3.5, 20: 2.25, 30: None})


def listed(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    capsys.readouterr()
    assert main(["checkpoints", "list", "out", "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_the_list_of_a_folder_has_score_and_best(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    found = listed(capsys)
    rows = {row["step"]: row for row in found["checkpoints"]}
    assert [rows[step]["score"] for step in (10, 20, 30)] == [3.5, 2.25, None]
    assert [rows[step]["best"] for step in (10, 20, 30)] == [False, True, False]
    assert rows[20]["metric"] == "fid"
    assert rows[30]["score_why"] == "it printed NaN as fid"
    assert [row["rating"] for row in found["checkpoints"]] == [None, None, None]
    assert Path(found["best"]).name == place.path(20).name
    assert main(["checkpoints", "list", "out"]) == 0
    shown = capsys.readouterr().out
    assert "fid 2.25 (best)" in shown
    assert "unknown (it printed NaN as fid)" in shown


def test_a_checkpoint_that_was_written_again_has_no_score(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    os.utime(place.path(20), (5000.0, 5000.0))
    row = next(row for row in listed(capsys)["checkpoints"] if row["step"] == 20)
    assert (row["score"], row["best"]) == (None, False)


def test_a_person_rates_by_path_or_by_name(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["checkpoints", "rate", place.path(10).name, "4", "--note", "sharp eyes"]) == 0
    assert "4 of 5 stars: sharp eyes" in capsys.readouterr().out
    assert main(["checkpoints", "rate", str(place.path(30)), "2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rating"] == 2
    rows = {row["step"]: row for row in listed(capsys)["checkpoints"]}
    assert [(rows[step]["rating"], rows[step]["note"]) for step in (10, 20, 30)] == [
        (4, "sharp eyes"), (None, None), (2, None),
    ]  # fmt: skip
    assert main(["checkpoints", "rate", str(place.path(10)), "0"]) == 0
    assert "not rated" in capsys.readouterr().out
    assert {row["rating"] for row in listed(capsys)["checkpoints"]} == {None, 2}
    assert rated_well(place.home, list_checkpoints(place.out).checkpoints) == {}


@pytest.mark.parametrize(("words", "code", "said"), [
    (["nothing-here", "4"], 3, "no such checkpoint"),
    (["out/net-step000010.safetensors", "6"], 2, "6 is no rating"),
    (["trainwatch.toml", "3"], 1, "is not a checkpoint"),
])  # fmt: skip
def test_what_cannot_be_rated_is_refused(
    place: Place, words: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (place.out.parent / "trainwatch.toml").touch()
    assert main(["checkpoints", "rate", *words]) == code
    assert said in capsys.readouterr().err


def test_damaged_ratings_are_not_written_over(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    file = place.home / "ratings.json"
    file.write_text("{")
    assert main(["checkpoints", "rate", str(place.path(10)), "4"]) == 2
    assert main(["checkpoints", "list", "out"]) == 2
    assert "damaged" in capsys.readouterr().err
    assert file.read_text() == "{"
    file.write_text('{"version": 99}')
    assert main(["checkpoints", "list", "out"]) == 2
    assert "newer trainwatch" in capsys.readouterr().err
    assert rated_well(place.home, list_checkpoints(place.out).checkpoints) == {}


def test_a_comparison_names_the_scores_of_both(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["checkpoints", "compare", str(place.path(10)), str(place.path(20)), "--json"]) == 0
    assert [one["score"] for one in json.loads(capsys.readouterr().out)["quality"]] == [3.5, 2.25]
    assert main(["checkpoints", "compare", str(place.path(10)), str(place.path(20))]) == 0
    assert "fid 2.25 (best)" in capsys.readouterr().out


def test_pruning_keeps_the_best_and_what_a_person_rated(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["checkpoints", "prune", "out", "--keep", "1", "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)["plan"]
    assert {Path(kept["checkpoint"]["path"]).name: kept["why"] for kept in plan["keep"]} == {
        place.path(30).name: "resume point",
        place.path(20).name: "has the best score",
    }
    assert main(["checkpoints", "rate", str(place.path(10)), "5"]) == 0
    capsys.readouterr()
    assert main(["checkpoints", "prune", "out", "--keep", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["plan"]["delete"] == []


def test_the_retention_of_a_run_keeps_what_a_person_rated(place: Place) -> None:
    retention = RunRetention(lambda: [place.out], good=partial(rated_well, place.home))
    assert [c.step for c in retention.plan(1, deep=False)] == [10, 20]
    assert main(["checkpoints", "rate", str(place.path(10)), "4"]) == 0
    assert [c.step for c in retention.plan(1, deep=False)] == [20]


def test_the_screen_shows_scores_and_the_best(place: Place) -> None:
    now = Situation(story=place.story(), now_wall=3000.0, now_t=2000.0)
    assert [view.score for view in checkpoint_views(now)] == ["score unknown", "fid 2.25, best", "fid 3.5"]
    view = timeline_view(now)
    assert "fid 2.25 at step 20 (the best)" in view.title
    assert "step 20 · fid 2.25, best" in [mark.text for mark in view.marks]
    rows = checkpoint_rows(tuple(reversed(now.story.checkpoints)), {}, 3000.0, now.story)
    assert [row.score for row in rows] == [view.score for view in checkpoint_views(now)]
    said = [fact.text for fact in checkpoint_facts(rows[1]) if fact.label == "score"]
    assert said == ["fid 2.25 (the best), on CPU"]


def test_a_newer_score_that_is_worse_names_the_best(tmp_path: Path) -> None:
    now = Situation(story=Place(tmp_path, {10: 1.5, 20: 4.5}).story(), now_wall=3000.0, now_t=2000.0)
    assert "fid 4.5 at step 20, best 1.5 at step 10" in timeline_view(now).title
    told = status.status_object(now, run="luca")["checkpoints"]
    assert (told["best"]["score"], told["best"]["step"]) == (1.5, 10)
    assert [each["score"] for each in told["scores"]] == [1.5, 4.5]


def rows_and_point(place: Place, capsys: pytest.CaptureFixture[str], *facts: Fact) -> tuple[list[str], str]:
    """The rows, newest first, and the name of the resume point of ``--json``."""
    with JournalWriter(place.run.journal) as writer:
        writer.append_all(6.0, 1006.0, facts)
    capsys.readouterr()
    assert main(["checkpoints", "list", str(place.out), "--json"]) == 0
    point = json.loads(capsys.readouterr().out)["resume_point"]
    assert main(["checkpoints", "list", str(place.out)]) == 0
    return capsys.readouterr().out.splitlines(), Path(point or "").name


def test_the_list_of_a_folder_has_the_verdicts_that_the_run_knows(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    """The list said *complete <- resume point* of a checkpoint of which the run knew that it holds NaN."""
    before = place.story().checkpoints[-1]
    values = {"verdict": "nonfinite", "reason": "w is NaN", "nonfinite": ("w",), "nan": ("w",)}
    rows, point = rows_and_point(place, capsys, CheckpointKnown(checkpoint=msgspec.structs.replace(before, **values)))
    assert "NaN or Inf: w is NaN" in rows[0]
    assert "resume point" not in rows[0]
    assert rows[1].endswith("<- resume point")
    assert point == "net-step000020.safetensors"
    os.utime(place.path(30), (3000.0, 3000.0))  # written again: the journal does not know this one
    rows, point = rows_and_point(place, capsys)
    assert rows[0].endswith("<- resume point if a deep check passes: only structure and sizes were read")
    assert point == "net-step000030.safetensors"


def test_the_list_of_a_folder_says_what_a_restart_does_not_use(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    aside = CheckpointsSetAside(paths=(str(place.path(30)),), why="two attempts from it crashed")
    rows, point = rows_and_point(place, capsys, aside)
    assert rows[0].endswith(" · not used for a restart: two attempts from it crashed")
    assert rows[1].endswith("<- resume point")
    assert point == "net-step000020.safetensors"


def test_the_list_of_a_folder_that_no_run_saved_to_says_what_was_looked_at(
    place: Place, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAINWATCH_HOME", str(tmp_path / "another"))
    assert main(["checkpoints", "list", str(place.out)]) == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert first.endswith("complete  <- resume point if a deep check passes: only structure and sizes were read")
