"""The list of sample images."""

from collections.abc import Sequence

import msgspec

from ...model.checkpoints.sample import Sample
from .. import quantity


class SampleRow(msgspec.Struct, frozen=True, kw_only=True):
    """``moment``: the step, else the epoch, else empty."""

    path: str
    name: str
    moment: str
    age: str
    size: str


def sample_rows(samples: Sequence[Sample], now_wall: float) -> tuple[SampleRow, ...]:
    """One row per image, in their order."""
    return tuple(
        SampleRow(
            path=s.path, name=s.name, moment=moment_words(s), age=quantity.age(max(0.0, now_wall - s.mtime)),
            size=quantity.size(s.size_bytes),
        )
        for s in samples
    )  # fmt: skip


def moment_words(sample: Sample) -> str:
    """``step 500``, ``epoch 4``, or nothing."""
    if sample.step is not None:
        return f"step {quantity.count(sample.step)}"
    return "" if sample.epoch is None else f"epoch {quantity.count(sample.epoch)}"
