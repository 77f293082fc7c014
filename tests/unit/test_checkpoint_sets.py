"""A checkpoint is a set of files: ``list`` and ``verify`` say the same of all that says that it is not whole."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.fakes.torch_files import write_zip
from trainwatch.cli import main


def save(path: Path, step: int, *, cut: bool = False) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_zip(path, {"model": {"w": np.ones((8, 8), np.float32)}, "optimizer": {"state": {}}, "iteration": step})
    if cut:
        path.write_bytes(path.read_bytes()[:-100])


def megatron(root: Path) -> None:
    for step in (500, 1000):
        for rank in ("mp_rank_00", "mp_rank_01"):
            save(root / f"iter_{step:07d}" / rank / "model_optim_rng.pt", step)
    (root / "latest_checkpointed_iteration.txt").write_text("1000\n")


def megatron_died_in_a_save(root: Path) -> None:
    megatron(root)
    save(root / "iter_0001500" / "mp_rank_00" / "model_optim_rng.pt", 1500)


def megatron_without_a_rank(root: Path) -> None:
    megatron(root)
    save(root / "iter_0001000" / "mp_rank_03" / "model_optim_rng.pt", 1000)


def megatron_without_a_file_of_a_rank(root: Path) -> None:
    megatron(root)
    save(root / "iter_0001000" / "mp_rank_00" / "distrib_optim.pt", 1000)


def nemo(root: Path) -> None:
    for step in (100, 200):
        save(root / f"model--val_loss=4.0-step={step}.ckpt", step)
    (root / "model--val_loss=4.0-step=200-unfinished").touch()


def pairs(root: Path, *, first: str = "G", second: str = "D", cut: int = 3000) -> None:
    for step in (1000, 2000, 3000):
        for half in (first, second):
            save(root / f"{half}_{step}.pth", step, cut=half == first and step == cut)


def pairs_of_other_names(root: Path) -> None:
    pairs(root, first="flow", second="vocoder")


def half_a_pair(root: Path) -> None:
    pairs(root, cut=0)
    (root / "D_3000.pth").unlink()


def files_that_are_no_pair(root: Path) -> None:
    pairs(root, first="best", second="model")
    (root / "best_2000.pth").unlink()


def without_the_state_file(root: Path) -> None:
    for epoch in (1, 2):
        folder = root / f"checkpoint_epoch_{epoch}"
        save(folder / "model.pt", epoch)
        save(folder / "optimizer.pt", epoch)
        save(folder / "scheduler.pt", epoch)
    (root / "checkpoint_epoch_1" / "training_state.json").write_text('{"epoch": 1, "global_step": 10}')


CASES: tuple[tuple[Callable[[Path], None], str, str, str | None], ...] = (
    (megatron, "iter_0001000", "complete", None),
    (megatron_died_in_a_save, "iter_0001500", "torn", "latest_checkpointed_iteration.txt beside it names 1000"),
    (megatron_without_a_rank, "iter_0001000", "torn", "the folder of rank 2 is missing"),
    (megatron_without_a_file_of_a_rank, "iter_0001000", "torn", "mp_rank_01/distrib_optim.pt is missing"),
    (nemo, "model--val_loss=4.0-step=200.ckpt", "torn", "model--val_loss=4.0-step=200-unfinished is beside it"),
    (nemo, "model--val_loss=4.0-step=100.ckpt", "complete", None),
    (pairs, "D_3000.pth", "torn", "G_3000.pth, which is saved with it, is not whole"),
    (pairs, "D_2000.pth", "complete", None),
    (pairs_of_other_names, "vocoder_3000.pth", "torn", "flow_3000.pth, which is saved with it, is not whole"),
    (half_a_pair, "G_3000.pth", "torn", "D_3000.pth is missing: it is saved with it"),
    (files_that_are_no_pair, "model_3000.pth", "complete", None),
    (without_the_state_file, "checkpoint_epoch_2", "complete", "training_state.json is missing: step and epoch"),
)


@pytest.mark.parametrize(("build", "name", "verdict", "reason"), CASES)
def test_list_and_verify_give_one_answer(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    build: Callable[[Path], None],
    name: str,
    verdict: str,
    reason: str | None,
) -> None:
    build(tmp_path)
    assert main(["checkpoints", "list", str(tmp_path), "--json"]) == 0
    listing = json.loads(capsys.readouterr().out)
    (listed,) = (each for each in listing["checkpoints"] if each["name"] == name)
    assert main(["checkpoints", "verify", str(tmp_path / name), "--json"]) == (verdict != "complete")
    verified = json.loads(capsys.readouterr().out)
    for found in (listed, verified):
        assert found["verdict"] == verdict
        assert found["reason"] is None if reason is None else reason in found["reason"]
    assert all("mp_rank" not in each["name"] for each in listing["checkpoints"])
    assert verdict == "complete" or listing["resume_point"] != listed["path"]


def test_a_folder_of_folders_lists_what_is_below(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    without_the_state_file(tmp_path / "v0-20261128-101010")
    assert main(["checkpoints", "list", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "v0-20261128-101010/checkpoint_epoch_2" in said
    assert "<- resume point" in said
    without_the_state_file(tmp_path / "v1-20261128-111111")
    assert main(["checkpoints", "list", str(tmp_path), "--json"]) == 0
    listing = json.loads(capsys.readouterr().out)
    assert (len(listing["checkpoints"]), listing["resume_point"]) == (4, None), "of two trainings"
