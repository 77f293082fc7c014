"""Files that PyTorch itself writes: listed, judged, and damaged ones found that PyTorch would load."""

import argparse
import json
import os
import random
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from trainwatch.core.checkpoints.inspection import verify  # noqa: E402
from trainwatch.core.checkpoints.listing import list_checkpoints, show  # noqa: E402
from trainwatch.core.checkpoints.manage.comparison import compare  # noqa: E402

pytestmark = pytest.mark.torch


class Trained:
    """A small model after one optimizer step."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.LayerNorm(8), torch.nn.Linear(8, 2))
        self.optimizer = torch.optim.AdamW(self.model.parameters())
        self.scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, 10)
        self.model(torch.randn(4, 8)).sum().backward()
        self.optimizer.step()
        self.scheduler.step()


@pytest.fixture
def trained() -> Trained:
    return Trained()


def save_directory(path: Path, trained: Trained, *, compiled: bool = False) -> Path:
    path.mkdir(parents=True)
    prefix = "_orig_mod." if compiled else ""
    torch.save({prefix + key: value for key, value in trained.model.state_dict().items()}, path / "model.pt")
    torch.save(trained.optimizer.state_dict(), path / "optimizer.pt")
    torch.save(trained.scheduler.state_dict(), path / "scheduler.pt")
    (path / "training_state.json").write_text(json.dumps({"global_step": 6100, "current_epoch": 117}))
    return path


def every_kind_of_tensor() -> dict[str, Any]:
    kinds = {str(dtype).removeprefix("torch."): torch.ones(5).to(dtype) for dtype in (
        torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2,
        torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64, torch.uint16, torch.uint32, torch.bool,
        torch.complex64,
    )}  # fmt: skip
    base = torch.randn(6, 7)
    return kinds | {
        "transposed": base.t(),
        "slice": base[1:4, 2:5],
        "shared": base,
        "parameter": torch.nn.Parameter(torch.ones(3)),
        "buffer": torch.nn.Buffer(torch.ones(3)),
        "empty": torch.empty(0),
        "scalar": torch.tensor(3.0),
        "sparse": torch.eye(3).to_sparse(),
        "csr": torch.eye(3).to_sparse_csr(),
        "conjugate": torch.randn(3, dtype=torch.complex64).conj(),
        "quantized": torch.quantize_per_tensor(torch.ones(4), 0.1, 0, torch.qint8),
    }


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.filterwarnings("ignore")
def test_every_kind_of_torch_tensor_is_listed(zipped: bool, tmp_path: Path) -> None:
    tensors = every_kind_of_tensor()
    path = tmp_path / "model_1.pt"
    torch.save(tensors, path, _use_new_zipfile_serialization=zipped)

    found = verify(path, deep=True)
    overview = show(path)

    assert (found.verdict, found.reason, found.opaque) == ("complete", None, ())
    assert overview is not None
    listed = {tensor.name: (tensor.dtype, tensor.shape) for tensor in overview.tensors}
    for name, tensor in tensors.items():
        if name not in {"sparse", "csr"}:
            assert listed[name] == (str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape)), name


def test_a_meta_tensor_has_no_bytes(tmp_path: Path) -> None:
    torch.save({"m": torch.empty(3, device="meta"), "w": torch.ones(2)}, tmp_path / "model_1.pt")

    assert verify(tmp_path / "model_1.pt", deep=True).verdict == "complete"


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_nan_in_model_or_optimizer_is_nonfinite(zipped: bool, value: float, trained: Trained, tmp_path: Path) -> None:
    path = tmp_path / "model_1.pt"
    state = {"model": trained.model.state_dict(), "optimizer": trained.optimizer.state_dict(), "step": 1}
    torch.save(state, path, _use_new_zipfile_serialization=zipped)
    assert verify(path, deep=True).verdict == "complete"

    state["optimizer"]["state"][2]["exp_avg_sq"][3] = value
    torch.save(state, path, _use_new_zipfile_serialization=zipped)
    found = verify(path, deep=True)

    assert found.verdict == "nonfinite"
    assert "tensor optimizer.state.2.exp_avg_sq" in (found.reason or "")


def test_values_of_a_storage_that_no_tensor_uses_are_ignored(tmp_path: Path) -> None:
    base = torch.full((10, 10), float("nan"))
    base[2:5, 3:7] = 1.0
    torch.save({"view": base[2:5, 3:7]}, tmp_path / "model_1.pt")
    assert verify(tmp_path / "model_1.pt", deep=True).verdict == "complete"

    base[4, 6] = float("nan")
    torch.save({"view": base[2:5, 3:7]}, tmp_path / "model_1.pt")
    assert verify(tmp_path / "model_1.pt", deep=True).verdict == "nonfinite"


def test_a_flipped_bit_that_torch_loads_is_found(trained: Trained, tmp_path: Path) -> None:
    path = save_directory(tmp_path / "checkpoint-500", trained)
    raw = bytearray((path / "model.pt").read_bytes())
    at = raw.index(trained.model[0].weight.detach().numpy().tobytes())
    raw[at + 1] ^= 4
    (path / "model.pt").write_bytes(raw)
    torch.load(path / "model.pt", weights_only=True)

    assert verify(path, deep=False).verdict == "complete"
    found = verify(path, deep=True)
    assert found.verdict == "corrupt"
    assert "has a wrong checksum" in (found.reason or "")


def test_a_torch_file_cut_anywhere_is_torn_or_corrupt(trained: Trained, tmp_path: Path) -> None:
    path = tmp_path / "model_1.pt"
    for zipped in (True, False):
        torch.save(trained.model.state_dict(), path, _use_new_zipfile_serialization=zipped)
        raw = path.read_bytes()
        for length in {*range(0, len(raw), 37), len(raw) - 1}:
            path.write_bytes(raw[:length])
            assert verify(path, deep=False).verdict in {"torn", "corrupt"}, length


def test_directories_and_objects_of_torch_are_verified(trained: Trained, tmp_path: Path) -> None:
    save_directory(tmp_path / "checkpoint-epoch-118", trained)
    hugging = save_directory(tmp_path / "checkpoint-500", trained)
    (hugging / "model.pt").rename(hugging / "pytorch_model.bin")
    (hugging / "training_state.json").unlink()
    rng = {"python": random.getstate(), "numpy": np.random.get_state(), "cpu": torch.get_rng_state()}  # noqa: NPY002
    torch.save(rng, hugging / "rng_state.pth")
    torch.save(argparse.Namespace(output=Path("/out")), hugging / "training_args.bin")
    (hugging / "trainer_state.json").write_text(json.dumps({"global_step": 500, "epoch": 1.25}))

    listing = list_checkpoints(tmp_path)

    assert {(c.name, c.step, c.epoch, c.verdict, c.opaque) for c in listing.checkpoints} == {
        ("checkpoint-epoch-118", 6100, 117, "complete", ()),
        ("checkpoint-500", 500, 1, "complete", ("rng_state.pth", "training_args.bin")),
    }
    assert all(verify(Path(c.path), deep=True).verdict == "complete" for c in listing.checkpoints)


def test_a_state_with_a_generator_of_numpy_is_complete(trained: Trained, tmp_path: Path) -> None:
    """Its seed sequence is stored as a call (numpy 1.25 and later), which was taken for a foreign one."""
    state = {"model": trained.model.state_dict(), "generator": np.random.default_rng(0), "global_step": 7}
    torch.save(state, tmp_path / "model_7.pt")

    found = verify(tmp_path / "model_7.pt", deep=True)

    assert (found.verdict, found.reason) == ("complete", None)


def test_whole_modules_and_torchscript_files_are_opaque_or_listed(trained: Trained, tmp_path: Path) -> None:
    torch.save(trained.model, tmp_path / "whole_500.pt")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.script(trained.model).save(str(tmp_path / "script_500.pt"))

    whole, script = verify(tmp_path / "whole_500.pt", deep=True), verify(tmp_path / "script_500.pt", deep=True)

    assert (whole.verdict, script.verdict) == ("complete", "complete")
    assert "torch.nn.modules.linear.Linear" in whole.opaque
    assert "TorchScript code" in script.opaque


class Evil:
    def __reduce__(self) -> Any:
        return os.system, ("true",)


def test_a_malicious_object_saved_by_torch_is_not_run(tmp_path: Path) -> None:
    torch.save({"w": torch.ones(2), "x": Evil()}, tmp_path / "model_1.pt")

    found = verify(tmp_path / "model_1.pt", deep=True)

    assert found.verdict == "opaque"
    assert "posix.system" in (found.reason or "")


def test_torch_files_without_checksums_are_complete_with_a_note(trained: Trained, tmp_path: Path) -> None:
    torch.serialization.set_crc32_options(compute_crc32=False)
    try:
        torch.save(trained.model.state_dict(), tmp_path / "model_1.pt")
    finally:
        torch.serialization.set_crc32_options(compute_crc32=True)

    found = verify(tmp_path / "model_1.pt", deep=True)

    assert (found.verdict, found.reason) == ("complete", "it was written without checksums")


def save_dcp(path: Path, trained: Trained) -> None:
    from torch.distributed.checkpoint.state_dict import get_state_dict
    from torch.distributed.checkpoint.state_dict_saver import save

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model, optimizer = get_state_dict(trained.model, trained.optimizer)
        save({"model": model, "optim": optimizer, "step": 7, "note": {"a": "x"}}, checkpoint_id=str(path))


def test_distributed_checkpoints_of_torch_are_verified(trained: Trained, tmp_path: Path) -> None:
    path = tmp_path / "dcp"
    save_dcp(path, trained)
    found = verify(path, deep=True)
    assert (found.kind, found.step, found.verdict, found.reason) == ("dcp", 7, "complete", None)

    with torch.no_grad():
        trained.model[2].bias[1] = float("inf")
    save_dcp(tmp_path / "bad", trained)
    assert "model.2.bias" in (verify(tmp_path / "bad", deep=True).reason or "")

    (path / ".metadata").unlink()
    assert verify(path, deep=False).verdict == "torn"


def test_compiled_keys_compare_with_plain_ones(trained: Trained, tmp_path: Path) -> None:
    plain = save_directory(tmp_path / "checkpoint-1", trained)
    compiled = save_directory(tmp_path / "checkpoint-2", trained, compiled=True)

    found = compare(plain, compiled)
    overview = show(compiled)

    assert (found.relative_change, found.only_in_a, found.only_in_b) == (0.0, (), ())
    assert overview is not None
    assert overview.compiled


@pytest.mark.filterwarnings("ignore:Detected pickle protocol")
def test_random_damage_that_stops_torch_stops_us(trained: Trained, tmp_path: Path) -> None:
    from tests.fakes.corruption import damage_bytes

    path = tmp_path / "model_1.pt"
    chance = random.Random(0)
    for zipped in (True, False):
        torch.save(trained.model.state_dict(), path, _use_new_zipfile_serialization=zipped)
        raw = path.read_bytes()
        for _ in range(int(os.environ.get("TRAINWATCH_CORRUPTIONS", "300"))):
            path.write_bytes(damage_bytes(raw, chance))
            verdict = verify(path, deep=True).verdict
            if verdict != "complete":
                continue
            state = torch.load(path, weights_only=True)
            assert all(torch.isfinite(tensor).all() for tensor in state.values() if isinstance(tensor, torch.Tensor))
