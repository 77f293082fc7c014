"""What two of the stand-ins train: a small network on numbers, with PyTorch's own loader, workers included."""

import time
from collections.abc import Iterator

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from tests.fakes.matrix import faults

ITEMS = 40
"""Ten steps of four: an epoch."""
STEP_S = 0.025


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
        self.net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
        self.optimizer = torch.optim.AdamW(self.net.parameters(), lr=learning_rate)
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda _: 1.0)

    def epoch(self, batch: int, accumulate: int, workers: int, step: int) -> Iterator[tuple[int, float]]:
        """(step, loss) of each optimizer step of an epoch; ``step``: how many were made before it."""
        source = iter(loader(batch, workers))
        for _ in range(ITEMS // (batch * accumulate)):
            if faults.loader_sticks(step, workers):
                source = iter(loader(batch, workers, stuck=True))
            loss = 0.0
            for _ in range(accumulate):
                found = self.net(next(source)).square().mean()
                torch.autograd.backward(found / accumulate)
                loss += float(found) / accumulate
            self.optimizer.step()
            self.optimizer.zero_grad()
            self.scheduler.step()
            time.sleep(STEP_S)
            step += 1
            faults.spoil(self.net, step)
            yield step, loss
            faults.give_up_on_nan(loss, step)
            faults.after_step(step, batch=batch)


def loader(batch: int, workers: int, *, stuck: bool = False) -> DataLoader[torch.Tensor]:
    """PyTorch's own."""
    return DataLoader(
        Numbers(stuck=stuck),
        batch_size=batch,
        num_workers=workers,
        multiprocessing_context="fork" if workers else None,
    )


def bar(label: str, step: int, total: int, after: str, begun: float) -> str:
    """One drawing of tqdm's bar."""
    spent = time.monotonic() - begun
    share = step / total
    drawn = "█" * int(10 * share)
    return (
        f"\r{label}{100 * share:3.0f}%|{drawn:10}| {step}/{total} "
        f"[00:{int(spent):02d}<00:{int(spent / share - spent):02d}, {spent / step:5.2f}s/it{after}]"
    )
