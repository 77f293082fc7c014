"""WSL2's channel to the GPU (dxg). Once broken it stays broken until the virtual machine restarts.

Sources: microsoft/WSL issues 41062 (after CUDA processes were killed, every ``create_process`` fails with -75) and
11293 (the GPU is lost after hours of load). Known false alarms: "Ioctl failed: -22" at start-up (issue 9099; not in the
table of kernel lines), and one time-out on a busy host, which is why a failed message has to end two attempts in a row
(recovery/policy.py).
"""

import re
from collections.abc import Iterable
from typing import Literal

from ...model.text.patterns import LazyPattern
from .catalogue import CompiledCatalogue
from .kernel_lines import read_kernel_line

CHANNEL = LazyPattern(r"\bdxg", re.IGNORECASE)
NO_NEW_PROCESS = LazyPattern(r"\bdxg.{0,200}create_process failed:? ?-75", re.IGNORECASE)
BREAKS = frozenset({"gpu_lost", "cuda_unknown_error"})
"""Failure classes of a trainer that lost the channel, and of kernel lines that report it."""

ChannelState = Literal["working", "failing", "lost"]


def channel_state(kernel: Iterable[str], catalogue: CompiledCatalogue) -> ChannelState:
    """The state of the channel by kernel lines. failing: a message over it failed; lost: Windows took the GPU away."""
    state: ChannelState = "working"
    for line in kernel:
        if CHANNEL.search(line) is None:
            continue
        clue = read_kernel_line(line, catalogue)
        if NO_NEW_PROCESS.search(line) is not None or (clue is not None and clue.failure == "gpu_lost"):
            return "lost"
        if clue is not None and clue.failure in BREAKS:
            state = "failing"
    return state
