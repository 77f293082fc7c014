"""Tensors that ``pickle.dump`` wrote, metadata of other trainers, and files without tensors."""

import pickle
from pathlib import Path

import pytest

from trainwatch.core.checkpoints.inspection import inspect, verify
from trainwatch.core.checkpoints.listing import list_checkpoints

torch = pytest.importorskip("torch")
safetensors = pytest.importorskip("safetensors.torch")
pytestmark = pytest.mark.torch


def test_tensors_of_a_plain_pickle_are_opaque_and_not_corrupt(tmp_path: Path) -> None:
    path = tmp_path / "model_11.pth"
    weights = {"w": torch.ones(3), "p": torch.nn.Parameter(torch.zeros(2, 2)), "shared": torch.ones(4)[1:]}
    path.write_bytes(pickle.dumps({"state_dict": weights}))
    for found in (inspect(path), verify(path, deep=True)):
        assert found is not None
        assert found.verdict == "opaque"
        assert found.opaque == ("torch.storage._load_from_bytes",)


def test_random_states_with_tensors_do_not_change_the_verdict(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoint_1"
    folder.mkdir()
    safetensors.save_file({"w": torch.ones(4)}, folder / "model.safetensors")
    torch.save({"state": {}, "param_groups": []}, folder / "optimizer.bin")
    (folder / "random_states_0.pkl").write_bytes(pickle.dumps({"torch_manual_seed": torch.get_rng_state()}))
    found = verify(folder, deep=True)
    assert (found.verdict, found.opaque) == ("complete", ("random_states_0.pkl",))


@pytest.mark.parametrize(
    ("name", "stored", "step", "epoch"),
    [
        ("latest.pth", {"meta": {"epoch": 3, "iter": 900}}, 900, 3),
        ("ckpt.pt", {"iter_num": 40, "config": {"max_iters": 50}}, 40, None),
        ("snapshot.pt", {"EPOCHS_RUN": 2}, None, 2),
        ("checkpoint-3.pth.tar", {"epoch": 3}, None, 3),
        ("checkpoint_4.pth", {"epoch": 3}, None, 3),
        ("model_003.pth", {"epoch": 3}, None, 3),
        ("net-100.pt", {"epoch": 99}, None, 99),
        ("steps_300.pt", {"epoch": 299}, 300, 299),
        ("checkpoint-500.pth", {"epoch": 3}, 500, 3),
        ("step_3.pt", {"epoch": 3}, 3, 3),
    ],
)
def test_the_count_that_a_file_stores_goes_before_a_number_in_its_name(
    tmp_path: Path, name: str, stored: dict[str, object], step: int | None, epoch: int | None
) -> None:
    torch.save({**stored, "state_dict": {"w": torch.ones(2)}}, tmp_path / name)
    (found,) = list_checkpoints(tmp_path).checkpoints
    assert (found.step, found.epoch) == (step, epoch)


@pytest.mark.parametrize("value", ["hello", {}, {"words": ["a", "b"], "size": 3}, [1, 2]])
def test_a_file_without_a_tensor_is_not_a_checkpoint(tmp_path: Path, value: object) -> None:
    torch.save(value, tmp_path / "vocabulary.pt")
    assert list_checkpoints(tmp_path).checkpoints == ()


def test_a_state_file_beside_weights_of_another_name_is_complete(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoint-500"
    folder.mkdir()
    safetensors.save_file({"w": torch.ones(4)}, folder / "pytorch_lora_weights.safetensors")
    torch.save({"state": {}, "param_groups": []}, folder / "optimizer.bin")
    (folder / "training_state.json").write_text('{"global_step": 500, "epoch": 3}')
    found = verify(folder, deep=True)
    assert (found.verdict, found.step) == ("complete", 500)

    (folder / "pytorch_lora_weights.safetensors").unlink()
    assert verify(folder, deep=False).verdict == "torn"


def test_a_layout_is_demanded_only_if_the_preset_or_the_files_name_it(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoint-500"
    folder.mkdir()
    torch.save({"w": torch.ones(4)}, folder / "renamed.pt")
    torch.save({"state": {}, "param_groups": []}, folder / "optimizer.pt")
    (folder / "training_state.json").write_text('{"global_step": 500}')
    assert verify(folder, deep=False).verdict == "complete"
    found = verify(folder, deep=False, layout="training_state")
    assert (found.verdict, found.reason, found.understood) == (
        "torn",
        "model.pt is missing: it holds the weights",
        False,
    )
