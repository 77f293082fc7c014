"""WSL2's channel to the GPU: once broken, it stays so until the virtual machine restarts, and no retry inside helps.

Sources: microsoft/WSL issues 41062 (forced ends of CUDA processes; from then on every ``create_process failed -75``,
for ever) and 11293 (lost in the middle of hours of load). Known false alarms: "Ioctl failed: -22" at start-up (issue
9099; not in the table of kernel lines), and a single time-out of a busy host, which is why a failed message alone has
to end two attempts in a row.
"""

import re

from ..failure.catalogue import CompiledCatalogue
from ..failure.kernel_lines import read_kernel_line
from ..state import JudgeState
from ..text.patterns import LazyPattern
from . import failure_history

CHANNEL = LazyPattern(r"\bdxg", re.IGNORECASE)
FOR_EVER = LazyPattern(r"\bdxg.*create_process failed:? ?-75", re.IGNORECASE)
BREAKS = frozenset({"gpu_lost", "cuda_unknown_error"})
ENDING = "WSL2's channel to the GPU is broken: starting again inside this virtual machine would fail, too"
WINDOWS_SIDE = (
    "in PowerShell on Windows: wsl --shutdown; open the distribution again, and then: trainwatch resume",
    "if it is back soon: update the Windows NVIDIA driver and WSL (wsl --update), and train with --profile stable",
)


def is_broken(state: JudgeState, failure: str, catalogue: CompiledCatalogue) -> bool:
    """Whether this end was the channel's: Windows took the GPU away, or its messages failed for the second time."""
    if failure not in BREAKS:
        return False
    lines = [line for line in state.diagnosis.kernel if CHANNEL.search(line)]
    clues = [clue for line in lines if (clue := read_kernel_line(line, catalogue))]
    lost = any(clue.failure == "gpu_lost" for clue in clues)
    if lost or any(FOR_EVER.search(line) for line in state.diagnosis.kernel):
        return True
    failed = any(clue.failure in BREAKS for clue in clues)
    return failed and failure_history.in_a_row(state.trail, failure) >= 1
