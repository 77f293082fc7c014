"""NaN and Inf are found in every element type, counted, named and placed; what no tensor covers is not tested."""

import json
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from safetensors.numpy import save_file

from tests.fakes.checkpoint_layouts import transformers, weights
from tests.fakes.torch_files import Called, write_dcp, write_legacy, write_zip
from trainwatch.core.checkpoints.formats.byte_range import Pace, open_bytes
from trainwatch.core.checkpoints.formats.nonfinite import Scanner, check_values
from trainwatch.core.checkpoints.formats.tensors import TORCH_ELEMENTS, Tensor
from trainwatch.core.checkpoints.formats.torch_files import read_torch_archive
from trainwatch.core.checkpoints.inspection import verify

WIDTH = {
    "F64": 8,
    "F32": 4,
    "F16": 2,
    "BF16": 2,
    "F8_E4M3": 1,
    "F8_E5M2": 1,
    "F8_E8M0": 1,
    "C64": 8,
    "I32": 4,
    "BOOL": 1,
}
BAD = {
    "F64": [struct.pack("<d", value) for value in (float("nan"), float("inf"), float("-inf"))],
    "F32": [struct.pack("<f", value) for value in (float("nan"), float("inf"), float("-inf"))],
    "F16": [struct.pack("<e", value) for value in (float("nan"), float("inf"), float("-inf"))],
    "BF16": [struct.pack("<H", bits) for bits in (0x7FC0, 0x7F80, 0xFF80, 0x7F81, 0xFFFF)],
    "F8_E4M3": [b"\x7f", b"\xff"],
    "F8_E5M2": [b"\x7c", b"\xfc", b"\x7d", b"\xff"],
    "F8_E8M0": [b"\xff"],
    "C64": [struct.pack("<2f", 1.0, float("nan")), struct.pack("<2f", float("inf"), 0.0)],
}
LARGEST = {
    "F64": struct.pack("<d", 1.7976931348623157e308),
    "F32": struct.pack("<f", -3.4028234663852886e38),
    "F16": struct.pack("<e", -65504.0),
    "BF16": struct.pack("<H", 0xFF7F),
    "F8_E4M3": b"\xfe",
    "F8_E5M2": b"\xfb",
    "F8_E8M0": b"\xfe",
    "C64": struct.pack("<2f", 3.4028234663852886e38, -3.4028234663852886e38),
    "I32": b"\xff\xff\xff\xff",
    "BOOL": b"\x01",
}


def write_safetensors(path: Path, tensors: dict[str, tuple[str, bytes]]) -> int:
    """Returns the byte at which the data begin."""
    header: dict[str, Any] = {}
    at = 0
    for name, (dtype, raw) in tensors.items():
        header[name] = {"dtype": dtype, "shape": [len(raw) // WIDTH[dtype]], "data_offsets": [at, at + len(raw)]}
        at += len(raw)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(raw for _, raw in tensors.values()))
    return 8 + len(text)


@pytest.mark.parametrize("dtype", sorted(LARGEST))
def test_the_largest_number_is_a_number(dtype: str, tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    write_safetensors(path, {"w": (dtype, LARGEST[dtype] * 1000)})

    assert verify(path, deep=True).verdict == "complete"


@pytest.mark.parametrize(("dtype", "bad"), [(dtype, bad) for dtype, bads in BAD.items() for bad in bads])
def test_one_nonfinite_value_is_found_at_every_position(dtype: str, bad: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    width = WIDTH[dtype]
    count = 3 * (1 << 20) // width + 5
    for place in (0, (1 << 20) // width - 1, (1 << 20) // width, count - 1):
        raw = bytearray(LARGEST[dtype] * count)
        raw[place * width : (place + 1) * width] = bad
        start = write_safetensors(path, {"a": (dtype, LARGEST[dtype] * 3), "w": (dtype, bytes(raw))})

        found = verify(path, deep=True)

        assert found.verdict == "nonfinite"
        at = start + 3 * width + place * width
        if dtype == "C64" and bad[:4] == struct.pack("<f", 1.0):
            at += 4
        assert found.reason == f"a.safetensors: holds 1 NaN or Inf in tensor w, the first at byte {at}"
        assert verify(path, deep=False).verdict == "complete"


def test_all_nonfinite_values_are_counted_over_tensors(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    bad = np.full(300_000, np.nan, dtype=np.float32)
    save_file({"a": np.ones(5, dtype=np.float32), "b": bad, "c": np.ones(7, dtype=np.float32), "d": bad[:10]}, path)

    found = verify(path, deep=True)

    assert "holds 300010 NaN or Inf in 2 tensors, the first b at byte " in (found.reason or "")


@pytest.mark.parametrize("write", [write_zip, write_legacy])
def test_the_reason_names_the_tensor_of_a_torch_file(write: Callable[[Path, Any], None], tmp_path: Path) -> None:
    path = tmp_path / "model_1.pt"
    arrays = weights()
    arrays["unet.up.weight"][3, 2] = np.inf
    write(path, {"model": arrays, "optimizer": {"state": {7: {"exp_avg": np.full(4, np.nan, dtype=np.float32)}}}})

    found = verify(path, deep=True)

    assert found.verdict == "nonfinite"
    assert "holds 5 NaN or Inf in 2 tensors, the first model.unet.up.weight" in (found.reason or "")


def test_nan_in_optimizer_state_is_nonfinite(tmp_path: Path) -> None:
    path = transformers(tmp_path)
    write_zip(path / "optimizer.pt", {"state": {0: {"exp_avg_sq": np.array([1.0, np.inf])}}, "param_groups": []})

    found = verify(path, deep=True)

    assert found.verdict == "nonfinite"
    assert (found.reason or "").startswith("optimizer.pt: holds 1 NaN or Inf in tensor state.0.exp_avg_sq")


def test_dcp_items_are_read_through(tmp_path: Path) -> None:
    arrays = weights()
    arrays["unet.up.bias"][2] = np.nan
    write_dcp(tmp_path / "step-9", arrays)

    found = verify(tmp_path / "step-9", deep=True)

    assert found.verdict == "nonfinite"
    assert "unet.up.bias" in (found.reason or "")


def test_values_that_no_tensor_covers_are_not_tested(tmp_path: Path) -> None:
    path = tmp_path / "model_1.pt"
    storage = np.ones((6, 4), dtype=np.float32)
    storage[:, 3] = np.nan

    write_zip(path, {"w": storage})
    assert verify(path, deep=True).verdict == "nonfinite"

    raw = path.read_bytes()
    with open_bytes(path) as source:
        contents = read_torch_archive(source)
        view = Tensor(
            name="w", element=TORCH_ELEMENTS["float32"], shape=(6, 3), region=contents.tensors[0].region, strides=(4, 1)
        )
        assert check_values(source, msgspec.structs.replace(contents, tensors=(view,)), Scanner(Pace(len(raw)))) == []
        column = msgspec.structs.replace(view, shape=(6,), strides=(4,), offset=3)
        damages = check_values(source, msgspec.structs.replace(contents, tensors=(column,)), Scanner(Pace(len(raw))))
    assert [damage.verdict for damage in damages] == ["nonfinite"]


def test_masks_may_hold_minus_infinity_and_nothing_else(tmp_path: Path) -> None:
    mask = np.triu(np.full((4, 4), -np.inf, dtype=np.float32), 1)
    save_file({"attn_mask": mask}, tmp_path / "a.safetensors")
    save_file({"weight": mask}, tmp_path / "b.safetensors")
    save_file({"attn_mask": -mask}, tmp_path / "c.safetensors")

    assert verify(tmp_path / "a.safetensors", deep=True).verdict == "complete"
    assert verify(tmp_path / "b.safetensors", deep=True).verdict == "nonfinite"
    assert verify(tmp_path / "c.safetensors", deep=True).verdict == "nonfinite"


def test_lightning_callbacks_start_at_infinity(tmp_path: Path) -> None:
    path = tmp_path / "epoch=3-step=1000.ckpt"
    stopping = {"EarlyStopping": {"best_score": np.array([np.inf], dtype=np.float32)}}
    write_zip(path, {"state_dict": weights(), "pytorch-lightning_version": "2.5.0", "epoch": 3, "callbacks": stopping})

    found = verify(path, deep=True)

    assert (found.verdict, found.step, found.epoch) == ("complete", 1000, 3)


@pytest.mark.parametrize(
    ("model", "verdict"), [({"w": {"w": np.ones(3)}}, "complete"), ({"w": np.ones(3)}, "nonfinite")]
)
def test_one_number_beside_the_states_is_no_weight(model: dict[str, Any], verdict: str, tmp_path: Path) -> None:
    """``{"model": …, "loss": loss}``: a loss that is NaN in one step ended a trainer whose log shows none."""
    write_zip(tmp_path / "a.pt", {**model, "loss": np.array(np.nan)})
    assert verify(tmp_path / "a.pt", deep=True).verdict == verdict


def test_a_wrong_checksum_that_torch_ignores_is_found(tmp_path: Path) -> None:
    path = tmp_path / "model_1.pt"
    write_zip(path, {"w": np.ones(1000, dtype=np.float32)})
    raw = bytearray(path.read_bytes())
    at = raw.index(np.ones(1000, dtype=np.float32).tobytes())
    raw[at + 2000] ^= 1
    path.write_bytes(raw)

    assert verify(path, deep=False).verdict == "complete"
    found = verify(path, deep=True)
    assert (found.verdict, found.reason) == (
        "corrupt",
        f"model_1.pt: member archive/data/0 at byte {at} has a wrong checksum",
    )


def test_a_tensor_beyond_its_storage_is_corrupt(tmp_path: Path) -> None:
    path = tmp_path / "model_1.pt"
    write_zip(path, {"w": Called("torch._utils", "_rebuild_tensor_v2", 1, 0, (5,), (1,), False, {})})

    assert verify(path, deep=False).verdict == "corrupt"


def test_progress_reaches_the_end_and_may_cancel(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    save_file({"w": np.zeros(12 << 20, dtype=np.float32)}, path)
    seen: list[tuple[int, int]] = []

    verify(path, deep=True, progress=lambda done, total: seen.append((done, total)))

    size = path.stat().st_size
    assert seen[-1] == (size, size)
    assert seen == sorted(seen)
    assert len(seen) >= 3

    def cancel(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        verify(path, deep=True, progress=cancel)


def test_the_rate_limit_sleeps_when_reading_is_too_fast() -> None:
    now = 0.0
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds
        slept.append(seconds)

    pace = Pace(100, None, 10.0, clock=lambda: now, sleep=sleep)
    for _ in range(10):
        pace.advance(10)

    assert now == pytest.approx(10.0)
    assert len(slept) == 10
    with pytest.raises(ValueError, match="above 0"):
        Pace(1, None, 0)


@pytest.mark.parametrize("size", [100, 100 << 20], ids=["it is cut", "it grows"])
def test_a_file_that_changes_while_it_is_read_has_the_verdict_writing(size: int, tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    save_file({"w": np.zeros(12 << 20, dtype=np.float32)}, path)

    found = verify(path, deep=True, progress=lambda done, total: os.truncate(path, size))

    assert (found.verdict, found.reason) == ("writing", "a.safetensors: changed while it was read")


def test_tensors_that_are_not_finite_have_the_same_names_in_all_checkpoints(tmp_path: Path) -> None:
    found = []
    for step in (100, 200):
        path = tmp_path / f"luca-{step:06d}.safetensors"
        bad = np.array([1.0, np.inf], dtype=np.float16)
        save_file({"layers.0.mask": -bad, "layers.1.b": bad, "layers.2.w": np.array([np.nan, 2.0])}, path)
        found.append(verify(path, deep=True))
        sharded = tmp_path / f"checkpoint-{step}"
        sharded.mkdir()
        write_zip(sharded / "optimizer.pt", {"state": {3: {"exp_avg": np.array([np.nan])}}, "param_groups": []})
        save_file({"w": np.ones(3, dtype=np.float32)}, sharded / "model.safetensors")
        (sharded / "trainer_state.json").write_text(f'{{"global_step": {step}}}')
        found.append(verify(sharded, deep=True))
    for one, other in ((found[0], found[2]), (found[1], found[3])):
        assert one.nonfinite == other.nonfinite
        assert one.nan == other.nan
    assert (set(found[0].nonfinite), found[0].nan) == ({"layers.1.b", "layers.2.w"}, ("layers.2.w",))
    assert found[1].nan == ("optimizer.pt: state.3.exp_avg",)
