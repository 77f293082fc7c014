"""Which native stacks are waits for a GPU. The frames were read from PyTorch 2.11 on an H200 with driver 580."""

import json

import pytest

from trainwatch.core.act.evidence.loop_looks import frames_by_thread, waits


def frame(name: str, module: str) -> dict[str, object]:
    return {"name": name, "filename": module, "module": module, "short_filename": None, "line": 0}


DRIVER = frame("0x7f739dbd3697", "/usr/lib/x86_64-linux-gnu/libcuda.so.580.159.04")
CLOCK = (frame("0x7f834eb09b66", "[vdso]"), frame("clock_gettime", "/usr/lib/x86_64-linux-gnu/libc.so.6"))
LINE = {"name": "train", "filename": "/home/ann/train.py", "module": None, "short_filename": "train.py", "line": 4}


@pytest.mark.parametrize(
    ("stack", "expected"),
    [
        ((DRIVER, LINE), True),
        ((*CLOCK, DRIVER, LINE), True),
        ((frame("sched_yield", "/lib/libc.so.6"), DRIVER), True),
        ((frame("0x7f0000000000", "/usr/lib/wsl/drivers/nv/libcuda_loader.so"), LINE), True),
        ((frame("std::__introsort_loop", "/opt/torch/lib/libtorch_cpu.so"), LINE), False),
        ((frame("ioctl", "/lib/libc.so.6"), DRIVER, LINE), False),  # pins memory: the kernel works
        ((frame("0x7f73ca898e51", "/lib/libc.so.6"), DRIVER, LINE), False),
        ((frame("adam_step", "/home/ann/libcuda_adam.so"), LINE), False),
        ((*CLOCK, LINE), False),
        ((LINE,), False),
        ((*CLOCK, frame("0x2", "?"), LINE), None),  # below the vDSO the stack could not be unwound
        (CLOCK, None),
        ((), None),
    ],
)
def test_innermost_frame_but_for_clocks_decides(stack: tuple[dict[str, object], ...], expected: bool | None) -> None:
    assert waits(stack) is expected


def test_threads_of_a_dump_by_their_native_id() -> None:
    dump = [{"os_thread_id": 580, "frames": [DRIVER]}, {"os_thread_id": None, "frames": [LINE]}]
    assert frames_by_thread(json.dumps(dump)) == {580: [DRIVER]}


@pytest.mark.parametrize("text", ["", "Error: permission denied", "{}", "[3]", '[{"os_thread_id": 5}]'])
def test_dump_that_cannot_be_read_has_no_threads(text: str) -> None:
    assert frames_by_thread(text) == {}
