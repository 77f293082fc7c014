"""Everything that may explain why an attempt hung or died, written down before it is ended and forgotten.

Into the incident's folder: Python stacks (twice, and native frames), what ``/proc`` tells of each process, the end of
the log, the GPUs and who holds them, the kernel log's end, and what the attempt was started with. Every part may be
missing: what could not be had is said in ``notes.txt``.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from ...model.observation import GpuReading
from ...model.ports import AttemptTarget
from ...model.run import RunSpec
from ..gpu.gpu_holders import Holder, gpu_holders
from .launch_record import keep_papers
from .stack_capture import StackReport, capture_stacks
from .stack_probe import keep

PAUSE_S = 10.0
"""Between the two looks: a loop that turns shows another place by then."""
PAUSE_SHARE = 1 / 9
"""… of ``hang.min_s`` where that is shorter: runs of seconds cannot wait for tens of them."""
BUDGET_S = 24.0
"""For all looks together: the judge waits 30 s for evidence, then ends the attempt without."""
LOG_LINES = 200
KERNEL_LINES = 200

KernelTail = Callable[[int], Sequence[str]]
"""The last lines of the kernel log; raises OSError with a sentence's worth of why."""


def no_kernel_log(_lines: int) -> Sequence[str]:
    """Where nothing can read it."""
    raise OSError("nothing here reads the kernel log")


def examine(
    target: AttemptTarget,
    folder: Path,
    spec: RunSpec,
    *,
    gpus: Sequence[GpuReading] | None,
    kernel_tail: KernelTail = no_kernel_log,
    proc: Path = Path("/proc"),
    py_spy: str | None = None,
) -> StackReport:
    """Take all evidence of a live or dead attempt. Blocks at most about ``BUDGET_S``; never stops the trainer for long.

    Raises OSError only when the folder cannot be made.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    notes: list[str] = []
    files = list(keep_papers(target, spec, folder, notes))
    papers = {
        "gpu.txt": gpu_text(gpus, gpu_holders(proc)),
        "kernel-log.txt": _kernel_text(kernel_tail, notes),
    }
    files += [str(folder / name) for name, text in papers.items() if text and keep(folder / name, text)]
    report = capture_stacks(
        target,
        folder,
        pause_s=min(PAUSE_S, spec.settings.hang.min_s * PAUSE_SHARE),
        budget_s=BUDGET_S,
        log_lines=LOG_LINES,
        native=True,
        py_spy=py_spy,
    )
    notes = list(dict.fromkeys((*report.notes, *notes)))
    if notes and keep(folder / "notes.txt", "".join(f"{note}\n" for note in notes)):
        files.append(str(folder / "notes.txt"))
    return msgspec.structs.replace(report, files=(*files, *report.files), notes=tuple(notes))


def gpu_text(gpus: Sequence[GpuReading] | None, holders: Sequence[Holder]) -> str:
    """One line a GPU, as last read, and one a process that has a GPU open."""
    lines = [_gpu_line(gpu) for gpu in gpus or ()] or ["no GPU can be seen"]
    lines += [f"held by {holder.sentence}" for holder in holders] or ["no process is seen to have a GPU open"]
    return "\n".join(lines) + "\n"


def _gpu_line(gpu: GpuReading) -> str:
    values = (
        ("utilisation", gpu.util_pct, 1, "%"),
        ("memory used", gpu.mem_used_bytes, 1e9, "GB"),
        ("of", gpu.mem_total_bytes, 1e9, "GB"),
        ("temperature", gpu.temp_c, 1, "°C"),
        ("power", gpu.power_w, 1, "W"),
        ("clock", gpu.clock_mhz, 1, "MHz"),
    )
    said = [f"{name} {'–' if value is None else f'{value / unit:.3g} {word}'}" for name, value, unit, word in values]
    throttle = f", held down by: {', '.join(gpu.throttle)}" if gpu.throttle else ""
    trouble = f"; {gpu.trouble}" if gpu.trouble else ""
    return f"GPU {gpu.index} {gpu.name or ''}: {', '.join(said)}{throttle}{trouble}"


def _kernel_text(kernel_tail: KernelTail, notes: list[str]) -> str:
    try:
        return "".join(f"{line}\n" for line in kernel_tail(KERNEL_LINES))
    except OSError as fault:
        notes.append(f"the kernel log cannot be read: {fault.strerror or fault}")
        return ""
