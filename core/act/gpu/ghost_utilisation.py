"""Ghost utilisation: a GPU reports 100 % without a process on it, because a process was killed during a kernel.

Sources: Datura-ai/lium-io pull requests 1140 (cards pinned at 100 % with 0 MiB for days after hard kills) and 1142 (a
busy counter that latches on Blackwell; opening and closing a context from a fresh process cleared it nine times in
nine). Known false alarms: the driver's average right after a kill, a desktop's game, a job of another user.
"""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence

from ...bound_process import bound
from ...model.observation import GpuReading
from .gpu_holders import gpu_holders
from .memory_gate import is_of_run

GHOST_UTIL_PCT = 95.0
RESIDENT_BYTES = 1.5e9
"""With more memory in use than a desktop needs, another job is on the GPU and explains the utilisation."""
CALM_S = 4.0
"""The driver's utilisation is an average of up to a second, so it is normal again some seconds after a job ended."""
TOUCH_S = 45.0
"""``import torch`` takes seconds from a slow disk; opening a context on a broken GPU may never return."""
END_S = 3.0
POLL_S = 0.5
WITHOUT_TORCH = 3
SEES_NO_GPU = 4
TOUCH = f"""import sys
try:
    import torch
except ImportError:
    sys.exit({WITHOUT_TORCH})
if not torch.cuda.is_available():
    sys.exit({SEES_NO_GPU})
for index in range(torch.cuda.device_count()):
    torch.zeros(1, device=f"cuda:{{index}}")
    torch.cuda.synchronize(index)
"""


def ghosts(readings: Sequence[GpuReading] | None, baseline: Mapping[int, float], own: tuple[int, ...] | None,
           tolerance_bytes: float) -> tuple[int, ...]:  # fmt: skip
    """Indices of own GPUs that report full utilisation with no memory in use. Unknown values do not count."""
    found = []
    for reading in readings or ():
        used, util = reading.mem_used_bytes, reading.util_pct
        if used is None or util is None or util < GHOST_UTIL_PCT or not is_of_run(reading, own):
            continue
        if used <= min(RESIDENT_BYTES, baseline.get(reading.index, 0.0) + tolerance_bytes):
            found.append(reading.index)
    return tuple(found)


def lasting_ghosts(
    look: Callable[[], tuple[int, ...]],
    *,
    calm_s: float = CALM_S,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> tuple[int, ...]:
    """The ghosts that last for ``calm_s``. Returns at once if there is none."""
    begun = clock()
    staying = look()
    while staying and clock() - begun < calm_s:
        sleep(POLL_S)
        now = look()
        staying = tuple(index for index in staying if index in now)
    return staying


def cuda_device_in_use() -> bool:
    """Whether a visible process has CUDA's device open, which explains the utilisation."""
    return any(holder.compute for holder in gpu_holders())


def touch(
    python: Sequence[str], *, cwd: str, env: Mapping[str, str], own: tuple[int, ...] | None, timeout_s: float = TOUCH_S
) -> str:
    """Open and close a context on each own GPU with the trainer's torch, in a process of its own. Returns a sentence.

    Blocks at most about ``timeout_s``. A process that hangs in the driver is left running and named.
    """
    chosen = {} if own is None else {"CUDA_VISIBLE_DEVICES": ",".join(map(str, own))}
    words = " ".join(python)
    try:
        process = subprocess.Popen(
            bound([*python, "-c", TOUCH], at_end=signal.SIGTERM, cwd=cwd, path=env.get("PATH")),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            cwd=cwd, env={"CUDA_DEVICE_ORDER": "PCI_BUS_ID", **env, **chosen}, start_new_session=True,
        )  # fmt: skip
    except OSError as fault:
        return f"{words} could not be started to open a context: {fault.strerror}"
    try:
        _, errors = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        left = "" if _end(process) else f"; it is stuck in the driver (pid {process.pid})"
        if process.stderr is not None:
            process.stderr.close()
        return f"opening a context with {words} took more than {timeout_s:g} s{left}"
    match process.returncode:
        case 0:
            return f"opened and closed a context with the torch of {words}"
        case 3:
            return f"{words} has no torch to open a context with"
        case 4:
            return f"the torch of {words} sees no GPU, so no context was opened"
        case code:
            last = (errors.decode("utf-8", "replace").strip().splitlines() or ["no reason given"])[-1]
            return f"a context could not be opened with {words} (status {code}): {last[:200]}"


def _end(process: "subprocess.Popen[bytes]") -> bool:
    """SIGTERM before SIGKILL: killing a process during a kernel causes ghost utilisation."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(END_S)
        except ProcessLookupError:
            return True
        except subprocess.TimeoutExpired:
            continue
        return True
    return False
