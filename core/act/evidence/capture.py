"""Collects the evidence of why an attempt hung or died into the incident's folder, before the attempt is ended.

These are Python stacks (twice, and native frames), ``/proc`` of each process, the end of the log, the GPUs and the
processes on them, the end of the kernel log, and the launch record. Every part may be missing; ``notes.txt`` lists
what could not be read and why.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from ...model.observation import GpuReading
from ...model.ports.supervision import AttemptTarget
from ...model.run import RunSpec
from ...model.text.memory_words import GIB
from ...private_folder import make_private
from ..gpu_clearing import Holder, gpu_holders
from ..stop.heartbeat_request import dump_stacks
from .evidence_files import write_file
from .launch_record import write_launch_record
from .stack_capture import StackReport, capture_stacks

PAUSE_S = 10.0
"""Between the two stack dumps: a loop that makes progress is then at another place."""
PAUSE_SHARE = 1 / 9
"""The same as a share of ``hang.min_s``, if that is shorter."""
BUDGET_S = 24.0
"""For all dumps together. The judge waits 30 s for evidence and then ends the attempt without it."""
LOG_LINES = 200
KERNEL_LINES = 200

KernelTail = Callable[[int], Sequence[str]]
"""Number of lines → the last lines of the kernel log. Raises OSError with the reason."""


def no_kernel_log(_lines: int) -> Sequence[str]:
    """For callers without access to the kernel log."""
    raise OSError("no access to the kernel log")


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
    """Collect all evidence of a live or dead attempt. Blocks at most about BUDGET_S.

    Raises OSError only if the folder cannot be made.
    """
    make_private(folder)
    notes: list[str] = []
    files = list(write_launch_record(target, spec, folder, notes))
    texts = {
        "gpu.txt": gpu_text(gpus, gpu_holders(proc)),
        "kernel-log.txt": _kernel_text(kernel_tail, notes),
    }
    files += [str(folder / name) for name, text in texts.items() if text and write_file(folder / name, text)]
    report = capture_stacks(
        target,
        folder,
        pause_s=pause_s(spec),
        budget_s=BUDGET_S,
        log_lines=LOG_LINES,
        native=True,
        py_spy=py_spy,
    )
    if not report.frames and (own := dump_stacks(target, folder)) is not None:
        files.append(str(own))
        notes.append("the stacks are from the trainer's own faulthandler (trainwatch.heartbeat)")
    notes = list(dict.fromkeys((*report.notes, *notes)))
    if notes and write_file(folder / "notes.txt", "".join(f"{note}\n" for note in notes)):
        files.append(str(folder / "notes.txt"))
    return msgspec.structs.replace(report, files=(*files, *report.files), notes=tuple(notes))


def pause_s(spec: RunSpec) -> float:
    """Return how long to wait for a process to show that it moves, in seconds."""
    return min(PAUSE_S, spec.settings.hang.min_s * PAUSE_SHARE)


def gpu_text(gpus: Sequence[GpuReading] | None, holders: Sequence[Holder]) -> str:
    """A line for each GPU with its last reading, and one for each process that has a GPU open."""
    lines = [_gpu_line(gpu) for gpu in gpus or ()] or ["no GPU telemetry"]
    lines += [f"held by {holder.sentence}" for holder in holders] or ["no visible process has a GPU open"]
    return "\n".join(lines) + "\n"


def _gpu_line(gpu: GpuReading) -> str:
    values = (
        ("utilisation", gpu.util_pct, 1, "%"),
        ("memory used", gpu.mem_used_bytes, GIB, "GiB"),
        ("of", gpu.mem_total_bytes, GIB, "GiB"),
        ("temperature", gpu.temp_c, 1, "°C"),
        ("power", gpu.power_w, 1, "W"),
        ("clock", gpu.clock_mhz, 1, "MHz"),
    )
    shown = [f"{name} {'–' if value is None else f'{value / unit:.3g} {word}'}" for name, value, unit, word in values]
    throttle = f", held down by: {', '.join(gpu.throttle)}" if gpu.throttle else ""
    trouble = f"; {gpu.trouble}" if gpu.trouble else ""
    return f"GPU {gpu.index} {gpu.name or ''}: {', '.join(shown)}{throttle}{trouble}"


def _kernel_text(kernel_tail: KernelTail, notes: list[str]) -> str:
    try:
        return "".join(f"{line}\n" for line in kernel_tail(KERNEL_LINES))
    except OSError as fault:
        notes.append(f"the kernel log cannot be read: {fault.strerror or fault}")
        return ""
