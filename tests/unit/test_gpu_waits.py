"""Which native stacks are waits for a GPU. The frames were read from PyTorch 2.11 on an H200 with driver 580."""

import pytest

from trainwatch.core.act.evidence.loop_looks import waits


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
