"""The kind of a hang, from captured stacks."""

from typing import Any

import pytest

from trainwatch.core.judge.hang.rules import signs_of
from trainwatch.core.model.observation import Outcome

LOADER = ["select (selectors.py:416)", "Queue.get (multiprocessing/queues.py:113)",
          "_MultiProcessingDataLoaderIter._try_get_data (torch/utils/data/dataloader.py:1291)"]  # fmt: skip


def seen(**data: Any) -> list[tuple[str, str]]:
    outcome = Outcome(t=1.0, decision=1, action="capture_stacks", ok=True, data=data)
    return [(sign.kind, sign.what) for sign in signs_of(outcome)]


@pytest.mark.parametrize(
    ("frames", "kind"),
    [
        (LOADER, "starved"),
        (["cudaStreamSynchronize (libcudart.so.12)", "item (train.py:3)"], "spin"),
        (["poll (libc.so.6)", "ncclAllReduce (libnccl.so.2)", "step (train.py:8)"], "spin"),
        (["all_reduce (torch/distributed/distributed_c10d.py:2501)"], "spin"),
        (["synchronize (torch/cuda/__init__.py:985)", "step (train.py:8)"], "spin"),
        (["0x7f739dbd3697 (libcuda.so.580.159.04)", "step (train.py:8)"], "spin"),  # an H200: the driver has no names
    ],
)
def test_stack_frames_show_the_kind_of_hang(frames: list[str], kind: str) -> None:
    ((found, what),) = seen(frames={"42": frames}, moved={"42": False})
    assert found == kind
    assert what.startswith("process 42 waits ")


def test_native_frames_are_read_too() -> None:
    found = seen(frames={"42": ["item (train.py:3)"]}, native={"42": ["cuEventSynchronize (libcuda.so.1)"]})
    assert found == [("spin", "process 42 waits for the GPU to finish its kernels: cuEventSynchronize (libcuda.so.1)")]


def test_waiting_for_a_loader_outweighs_waiting_for_a_gpu() -> None:
    frames = {"1": ["cudaStreamSynchronize (libcudart.so.12)"], "2": LOADER}
    assert [kind for kind, _ in seen(frames=frames)] == ["starved", "spin"]


def test_stack_of_a_process_that_moved_is_ignored() -> None:
    assert seen(frames={"42": LOADER}, moved={"42": True}) == []
