"""Small complete checkpoints of every layout, for tests. Each builder returns the path that is the checkpoint."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from tests.fakes.torch_files import Called, write_dcp, write_legacy, write_zip

Arrays = dict[str, np.ndarray[Any, Any]]


def weights(seed: int = 0) -> Arrays:
    random = np.random.default_rng(seed)
    return {
        "unet.down.weight": random.normal(size=(8, 16)).astype(np.float32),
        "unet.up.weight": random.normal(size=(16, 4)).astype(np.float16),
        "unet.up.bias": random.normal(size=(7,)).astype(np.float64),
        "steps": np.arange(5, dtype=np.int64),
    }


def optimizer(seed: int = 1) -> dict[str, Any]:
    arrays = list(weights(seed).values())
    state = {index: {"step": 10, "exp_avg": array, "exp_avg_sq": array * array} for index, array in enumerate(arrays)}
    return {"state": state, "param_groups": [{"lr": 1e-4, "betas": (0.9, 0.999), "params": [0, 1, 2, 3]}]}


def rng_state() -> dict[str, Any]:
    words = Called("numpy.core.multiarray", "_reconstruct", (0,), "b")
    return {"python": (3, tuple(range(20)), None), "numpy": words, "cpu": np.arange(6, dtype=np.int64)}


def safetensors_file(root: Path) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    path = root / "luca-000004.safetensors"
    save_file(weights(), path, metadata={"ss_steps": "1234", "ss_epoch": "4"})
    return path


def zip_file(root: Path) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    path = root / "model_500.pt"
    write_zip(path, {"model": weights(), "optimizer": optimizer(), "global_step": 500})
    return path


def legacy_file(root: Path) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    path = root / "model_700.pth"
    write_legacy(path, {"model": weights(), "global_step": 700})
    return path


def training_state(root: Path) -> Path:
    path = root / "checkpoint-epoch-118"
    path.mkdir(parents=True)
    write_zip(path / "model.pt", weights())
    write_zip(path / "optimizer.pt", optimizer())
    write_zip(path / "scheduler.pt", {"last_epoch": 117, "base_lrs": [1e-4]})
    write_zip(path / "ema_model.pt", weights(3))
    (path / "training_state.json").write_text(json.dumps({"global_step": 6100, "current_epoch": 117}))
    return path


def transformers(root: Path) -> Path:
    path = root / "checkpoint-500"
    path.mkdir(parents=True)
    save_file(weights(), path / "model.safetensors", metadata={"format": "pt"})
    write_zip(path / "optimizer.pt", optimizer())
    write_zip(path / "scheduler.pt", {"last_epoch": 500})
    write_zip(path / "rng_state.pth", rng_state())
    write_zip(path / "training_args.bin", Called("argparse", "Namespace"))
    (path / "config.json").write_text("{}")
    (path / "trainer_state.json").write_text(json.dumps({"global_step": 500, "epoch": 1.5, "log_history": []}))
    return path


def sharded(root: Path) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    arrays = weights()
    files = {name: f"model-{number:05}-of-00002.safetensors" for number, name in zip((1, 1, 2, 2), arrays, strict=True)}
    for file in set(files.values()):
        save_file({name: arrays[name] for name in arrays if files[name] == file}, root / file)
    path = root / "model.safetensors.index.json"
    path.write_text(json.dumps({"metadata": {"total_size": 736}, "weight_map": files}))
    return path


def accelerate(root: Path) -> Path:
    path = root / "luca-000004-state"
    path.mkdir(parents=True)
    save_file(weights(), path / "model.safetensors")
    write_zip(path / "optimizer.bin", optimizer())
    write_zip(path / "scheduler.bin", {"last_epoch": 4})
    write_zip(path / "random_states_0.pkl", rng_state())
    (path / "train_state.json").write_text(json.dumps({"current_epoch": 4, "current_step": 1234}))
    return path


def dcp(root: Path) -> Path:
    path = root / "step-7"
    write_dcp(path, weights(), {"step": 7, "note": "x"})
    return path


def deepspeed(root: Path) -> Path:
    path = root / "global_step500"
    path.mkdir(parents=True)
    states = {"module": weights(), "optimizer": None, "dp_world_size": 2, "mp_world_size": 1, "global_steps": 500}
    write_zip(path / "mp_rank_00_model_states.pt", states)
    for rank in range(2):
        write_zip(path / f"bf16_zero_pp_rank_{rank}_mp_rank_00_optim_states.pt", {"optimizer_state_dict": optimizer()})
    (root / "latest").write_text("global_step500")
    return path


LAYOUTS: dict[str, Callable[[Path], Path]] = {
    "safetensors": safetensors_file,
    "zip": zip_file,
    "legacy": legacy_file,
    "training_state": training_state,
    "transformers": transformers,
    "sharded": sharded,
    "accelerate": accelerate,
    "dcp": dcp,
    "deepspeed": deepspeed,
}
