"""A line through numbers, trained and saved with numpy: files as PyTorch and safetensors write them."""

import multiprocessing
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from tests.fakes.matrix import faults
from tests.fakes.matrix.bar import ITEMS, STEP_S
from tests.fakes.torch_files import Described, write_zip

Array = np.ndarray[Any, Any]


class OutOfMemoryError(RuntimeError):
    """Named as PyTorch's own."""


OutOfMemoryError.__module__ = "torch"


def save(value: Any, path: Path) -> None:
    """As ``torch.save``. Opened by its path: a path may be a link to a full device."""
    with path.open("wb") as file:
        whole = path.with_name(f".{path.name}.made")
        write_zip(whole, value)
        raw = whole.read_bytes()
        whole.unlink()
        file.write(raw)


def load(path: Path, **_: Any) -> list[Array]:
    """The tensors of a file in the order in which they were stored; raises BadZipFile where a byte is wrong."""
    with zipfile.ZipFile(path) as archive:
        if (bad := archive.testzip()) is not None:
            raise zipfile.BadZipFile(f"bad CRC-32 for file {bad!r}")
        names = [name for name in archive.namelist() if "/data/" in name]
        return [np.frombuffer(archive.read(name), "float32").copy() for name in names]


def chance() -> dict[str, Any]:
    """The state of the random numbers."""
    return {"numpy": np.random.default_rng(1).random(4).astype("float32"), "cpu": np.zeros(16, "float32")}


def described(thing: object) -> Described:
    """An object to be stored by the name of its class."""
    return Described(type(thing).__module__, type(thing).__name__, dict(vars(thing)))


def write_nan(path: Path) -> None:
    """The same file with one value that is no number."""
    if path.suffix == ".safetensors":
        with safe_open(path, "np") as file:
            metadata = dict(file.metadata() or {})
        tensors = load_file(path)
        next(iter(tensors.values())).reshape(-1)[0] = np.nan
        save_file(tensors, path, metadata=metadata)
        return
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    first = next(name for name in members if "/data/" in name)
    members[first] = np.float32(np.nan).tobytes() + members[first][4:]
    with zipfile.ZipFile(path, "w") as archive:
        for name, raw in members.items():
            archive.writestr(name, raw)


def _try_get_data(workers: int) -> None:
    """Wait for workers that bring nothing, in a function of the name that PyTorch's loader does it in."""
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    for _ in range(workers):
        context.Process(target=faults.wait_for_ever, daemon=True).start()
    queue.get()


class SmallModel:
    """Weights, and an optimizer with momentum."""

    def __init__(self, learning_rate: float) -> None:
        self.rate = learning_rate
        self._weights = {"0.weight": np.full((16, 8), 0.5, "float32"), "0.bias": np.zeros(16, "float32")}
        self._momentum = {name: np.zeros_like(value) for name, value in self._weights.items()}

    def weights(self) -> dict[str, Array]:
        """Name of a tensor → its values."""
        return self._weights

    def load_weights(self, weights: dict[str, Array]) -> None:
        """Take the values of ``weights()``."""
        self._weights = {name: value.copy() for name, value in weights.items()}

    def states(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Of the optimizer and of the scheduler."""
        state = {number: {"exp_avg": value} for number, value in enumerate(self._momentum.values())}
        groups = [{"lr": self.rate, "params": list(range(len(state)))}]
        return {"state": state, "param_groups": groups}, {"last_epoch": 1, "_last_lr": [self.rate]}

    def load_states(self, optimizer: list[Array], _scheduler: object) -> None:
        """Take the values of ``states()``."""
        for value, stored in zip(self._momentum.values(), optimizer, strict=True):
            value[...] = stored.reshape(value.shape)

    def _line(self, numbers: Array) -> Array:
        made: Array = self._weights["0.weight"] @ numbers + self._weights["0.bias"]
        return made

    def epoch(self, batch: int, accumulate: int, workers: int, step: int) -> Iterator[tuple[int, float]]:
        """(step, loss) of each optimizer step of an epoch; ``step``: how many were made before it."""
        numbers = np.linspace(0, 1, 8, dtype="float32")
        for _ in range(ITEMS // (batch * accumulate)):
            if faults.loader_sticks(step, workers):
                _try_get_data(workers)
            error = self._line(numbers)
            for name, slope in (("0.weight", np.outer(error, numbers)), ("0.bias", error)):
                self._momentum[name][...] = 0.9 * self._momentum[name] + slope
                self._weights[name] -= self.rate * self._momentum[name]
            time.sleep(STEP_S)
            step += 1
            faults.spoil(self._weights.values(), step)
            loss = float(np.square(self._line(numbers)).mean())
            yield step, loss
            faults.give_up_on_nan(loss, step)
            faults.after_step(step, batch=batch)
