"""Reports and lists never advise to delete what is not understood, and name it."""

from pathlib import Path

import msgspec
import pytest

from tests.unit.test_newest_checkpoint import story
from trainwatch.cli import main
from trainwatch.core.checkpoints.manage.pruning import plan_prune
from trainwatch.core.model.checkpoint import Checkpoint
from trainwatch.core.model.fact import CheckpointKnown
from trainwatch.core.model.story import Situation
from trainwatch.core.views.checkpoint_list import checkpoint_views
from trainwatch.core.views.run_summary import needs
from trainwatch.tui.dialogs.choose import BEGINNING, choose_checkpoint


def known(name: str, verdict: str, *, understood: bool = True) -> Checkpoint:
    made = {"path": f"out/{name}", "name": name, "kind": "directory", "step": 20, "epoch": None, "size_bytes": 1}
    return msgspec.convert({**made, "mtime": 1000.0, "verdict": verdict, "understood": understood}, Checkpoint)


def situation_of(*checkpoints: Checkpoint) -> Situation:
    return Situation(story=story(*(CheckpointKnown(checkpoint=c) for c in checkpoints)), now_wall=1300.0)


def over(now: Situation) -> Situation:
    return msgspec.structs.replace(now, story=msgspec.structs.replace(now.story, state="finished"))


def test_the_report_advises_to_keep_what_is_not_understood() -> None:
    folders = [known(f"checkpoint-{n}", "torn", understood=False) for n in (20, 40)]

    said = "\n".join(need.text for need in needs(situation_of(*folders)))

    assert "you may remove" not in said
    assert "Keep checkpoint-20, checkpoint-40: nothing else was saved" in said


def test_the_report_advises_to_remove_what_is_damaged() -> None:
    said = "\n".join(need.text for need in needs(over(situation_of(known("checkpoint-20", "corrupt")))))

    assert "you may remove it: checkpoint-20" in said


def test_the_report_advises_to_remove_nothing_that_a_training_may_write_anew() -> None:
    waits = situation_of(known("checkpoint-20", "nonfinite"))

    for each in (waits, msgspec.structs.replace(over(waits), now_wall=1060.0)):  # for a restart; it ended a minute ago
        said = "\n".join(need.text for need in needs(each))
        assert "1 checkpoint cannot be resumed from: checkpoint-20" in said


def test_list_names_what_may_be_state(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "whatever.q7").write_bytes(b"\x00\x01")
    (tmp_path / "train.log").write_text("step 1")

    assert main(["checkpoints", "list", str(tmp_path)]) == 0

    told = capsys.readouterr().out
    assert "no checkpoints in" in told
    assert "may be the state of a training, of no known make: whatever.q7" in told


def test_prune_keeps_what_is_not_understood(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"model-{number}.gguf").write_bytes(b"GGUF" + bytes(20))

    plan = plan_prune(tmp_path, 1, deep=False)

    assert plan.delete == ()
    assert len(plan.keep) == 3


def test_the_screen_offers_what_is_not_understood_before_the_beginning() -> None:
    dialog = choose_checkpoint(checkpoint_views(situation_of(known("checkpoint-20", "torn", understood=False))))
    opaque = choose_checkpoint(checkpoint_views(situation_of(known("all.pt", "opaque", understood=False))))
    damaged = choose_checkpoint(checkpoint_views(situation_of(known("checkpoint-20", "torn"))))

    assert (dialog.chosen, [key for key, _ in dialog.rows]) == ("out/checkpoint-20", ["out/checkpoint-20", BEGINNING])
    assert opaque.rows[0][1].endswith("unverified  ← newest")
    assert (damaged.chosen, [key for key, _ in damaged.rows]) == (BEGINNING, [BEGINNING])
