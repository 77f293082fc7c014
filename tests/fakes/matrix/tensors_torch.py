"""A small network on numbers, with PyTorch's own loader, workers included, and its own saves."""

import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import nn
from torch.utils.data import DataLoader, Dataset

from tests.fakes.matrix import faults, no_compiler  # noqa: F401
from tests.fakes.matrix.bar import ITEMS, STEP_S

OutOfMemoryError = torch.OutOfMemoryError
save, load = torch.save, torch.load


def chance() -> dict[str, Any]:
    """The state of the random numbers."""
    import random

    import numpy as np

    return {"python": random.getstate(), "numpy": np.random.get_state(), "cpu": torch.get_rng_state()}  # noqa: NPY002


def described(thing: object) -> object:
    """An object to be stored as it is."""
    return thing


def write_nan(path: Path) -> None:
    """The same file with one value that is no number, written by the library that wrote it."""
    if path.suffix == ".safetensors":
        with safe_open(path, "pt") as file:
            metadata = dict(file.metadata() or {})
        tensors = load_file(path)
        next(iter(tensors.values())).view(-1)[0] = math.nan
        save_file(tensors, path, metadata=metadata)
        return
    state = torch.load(path, weights_only=False)
    _first_tensor(state).view(-1)[0] = math.nan
    torch.save(state, path)


def _first_tensor(value: Any) -> torch.Tensor:
    if isinstance(value, torch.Tensor) and value.is_floating_point() and value.dim():
        return value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ():
        try:
            return _first_tensor(inner)
        except LookupError:
            continue
    raise LookupError("no tensor")


class Numbers(Dataset[torch.Tensor]):
    """The same everywhere."""

    def __init__(self, *, stuck: bool = False) -> None:
        self._stuck = stuck

    def __len__(self) -> int:
        return ITEMS

    def __getitem__(self, number: int) -> torch.Tensor:
        if self._stuck:
            faults.wait_for_ever()
        return torch.linspace(0, 1 + number / ITEMS, 8)


class SmallModel:
    """Weights, optimizer and scheduler."""

    def __init__(self, learning_rate: float) -> None:
        torch.manual_seed(1)
        torch.set_num_threads(1)
        self._net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
        self._optimizer = torch.optim.AdamW(self._net.parameters(), lr=learning_rate)
        self._scheduler = torch.optim.lr_scheduler.LambdaLR(self._optimizer, lambda _: 1.0)

    @property
    def rate(self) -> float:
        """The learning rate now."""
        return float(self._optimizer.param_groups[0]["lr"])

    def weights(self) -> dict[str, torch.Tensor]:
        """Name of a tensor → its values."""
        return self._net.state_dict()

    def load_weights(self, weights: dict[str, torch.Tensor]) -> None:
        """Take the values of ``weights()``."""
        self._net.load_state_dict(weights)

    def states(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Of the optimizer and of the scheduler."""
        return self._optimizer.state_dict(), self._scheduler.state_dict()

    def load_states(self, optimizer: Any, scheduler: Any) -> None:
        """Take the values of ``states()``."""
        self._optimizer.load_state_dict(optimizer)
        self._scheduler.load_state_dict(scheduler)

    def epoch(self, batch: int, accumulate: int, workers: int, step: int) -> Iterator[tuple[int, float]]:
        """(step, loss) of each optimizer step of an epoch; ``step``: how many were made before it."""
        source = iter(loader(batch, workers))
        for _ in range(ITEMS // (batch * accumulate)):
            if faults.loader_sticks(step, workers):
                source = iter(loader(batch, workers, stuck=True))
            loss = 0.0
            for _ in range(accumulate):
                found = self._net(next(source)).square().mean()
                torch.autograd.backward(found / accumulate)
                loss += float(found) / accumulate
            self._optimizer.step()
            self._optimizer.zero_grad()
            self._scheduler.step()
            time.sleep(STEP_S)
            step += 1
            faults.spoil(self._net.parameters(), step)
            yield step, loss
            faults.give_up_on_nan(loss, step)
            faults.after_step(step, batch=batch)


def loader(batch: int, workers: int, *, stuck: bool = False) -> DataLoader[torch.Tensor]:
    """The DataLoader of PyTorch, with its worker processes."""
    return DataLoader(
        Numbers(stuck=stuck),
        batch_size=batch,
        num_workers=workers,
        multiprocessing_context="fork" if workers else None,
    )
