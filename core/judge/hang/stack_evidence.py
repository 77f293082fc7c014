"""The kind of a hang as the stack frames of the hung processes show it, whatever GPU and CPU looked like.

Sources: py-spy dumps of hung DataLoaders (the main process waits in ``_try_get_data``: pytorch/pytorch issues 1355 and
75147, RolnickLab/ami-data-companion issue 140), of collectives whose peers never come (NCCL watchdog reports), and of a
GPU that does not finish its kernels (``cudaStreamSynchronize`` below ``item`` or ``synchronize``). A process that moved
between the two looks proves nothing: a healthy training synchronises, too, but not for ten seconds in one place.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from ...model.incident import HangKind
from ...model.observation import Outcome
from ...model.text.patterns import LazyPattern


class Sign(msgspec.Struct, frozen=True, kw_only=True):
    """The kind of hang that a stack shows. ``what``: a sentence of evidence."""

    kind: HangKind
    what: str


FRAMES: tuple[tuple[LazyPattern, HangKind, str], ...] = (
    (LazyPattern(r"_try_get_data\b"), "starved", "waits for a data loader worker that brings nothing"),
    (
        LazyPattern(r"\bp?nccl[A-Z]\w+|ProcessGroupNCCL|\b(?:all_reduce|all_gather\w*|barrier) \(torch/distributed"),
        "spin",
        "waits in a collective for other ranks",
    ),
    (
        LazyPattern(
            r"\b(?:cuda|cu)(?:Stream|Device|Event|Ctx)Synchronize|\bcu(?:da)?Memcpy\w*"
            r"|\bsynchronize \(torch/cuda/(?:__init__|streams)\.py|\(libcuda(?:_loader)?\.so"
        ),
        "spin",
        "waits for the GPU to finish its kernels",
    ),
)
"""Strongest first: a process that waits for data does so whatever else is on its stack."""


SAVE_FRAME = LazyPattern(r"(?:^|[.\s])_*(?:\w+_)?(?:save|serialize_file)(?:_\w+)? \(")
"""A function that saves: ``save (torch/serialization.py:967)``, ``save_checkpoint (train.py:49)``."""


def save_frame(outcome: Outcome | None) -> str:
    """Return the frame of a save in the captured stacks; "" if none shows one."""
    frames = None if outcome is None else outcome.data.get("frames")
    stacks = frames.values() if isinstance(frames, dict) else ()
    every = (str(frame) for stack in stacks if isinstance(stack, list | tuple) for frame in stack)
    return next((frame for frame in every if SAVE_FRAME.search(frame)), "")


def signs_of(outcome: Outcome | None) -> tuple[Sign, ...]:
    """Return the signs in the captured stacks, strongest first; none if nothing was captured."""
    if outcome is None:
        return ()
    found: list[tuple[int, Sign]] = []
    for pid, frames in _stacks(outcome.data):
        for rank, (pattern, kind, means) in enumerate(FRAMES):
            frame = next((frame for frame in frames if pattern.search(frame)), None)
            if frame is not None:
                found.append((rank, Sign(kind=kind, what=f"process {pid} {means}: {frame}")))
                break
    return tuple(sign for _, sign in sorted(found, key=lambda pair: pair[0])[:3])


def _stacks(data: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """Yield pid and frames of each process that did not move; native frames before those of Python."""
    frames, native, moved = (data.get(name) for name in ("frames", "native", "moved"))
    if not isinstance(frames, dict):
        return
    for pid, stack in frames.items():
        if isinstance(moved, dict) and moved.get(pid) is True:
            continue
        below = native.get(pid) if isinstance(native, dict) else None
        yield str(pid), [str(frame) for part in (below, stack) if isinstance(part, list | tuple) for frame in part]
