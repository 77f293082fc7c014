"""Collects the evidence of why an attempt hung or died into the incident's folder, before the attempt is ended.

These are Python stacks (twice, and native frames), ``/proc`` of each process, the end of the log, the GPUs and the
processes on them, the end of the kernel log, and the launch record. Every part may be missing; ``notes.txt`` lists
what could not be read and why.
"""

import contextlib
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from ...model.edge import EDGE
from ...model.observation import GpuReading
from ...model.redact import HIDDEN, Redaction, is_secret_name
from ...model.run import RunSpec
from ...model.supervision_ports import AttemptTarget
from ...model.text import GIB
from ...private_folder import make_private
from .. import processes
from ..gpu_clearing import Holder, gpu_holders
from ..launch.attempt_records import read_order
from ..save_request import dump_stacks
from .stack_capture import StackReport, capture_stacks

PAUSE_S = 10.0
"""Between the two stack dumps: a loop that makes progress is then at another place."""
PAUSE_SHARE = 1 / 9
"""The same as a share of ``hang.min_s``, if that is shorter."""
KERNEL_LINES = 200

KernelTail = Callable[[int], Sequence[str]]
"""Number of lines → the last lines of the kernel log. Raises OSError with the reason."""
Text = Callable[[list[str]], str]
"""The content of a file; why something is missing is appended to the list. "": no file."""


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
) -> StackReport:
    """Collect all evidence of a live or dead attempt on this machine. Blocks at most about BUDGET_S.

    Raises OSError only if the folder cannot be made.
    """

    def stacks(notes: list[str]) -> StackReport:
        report = capture_stacks(target, folder, pause_s=pause_s(spec))
        if report.frames or (own := dump_stacks(target, folder)) is None:
            return report
        notes.append("the stacks are from the trainer's own faulthandler (trainwatch.heartbeat)")
        return msgspec.structs.replace(report, files=(str(own), *report.files))

    texts: dict[str, Text] = {
        "gpu.txt": lambda _notes: gpu_text(gpus, gpu_holders()),
        "kernel-log.txt": lambda notes: _kernel_text(kernel_tail, notes),
    }
    return collect(target, folder, spec, texts=texts, stacks=stacks)


def collect(
    target: AttemptTarget,
    folder: Path,
    spec: RunSpec,
    *,
    texts: Mapping[str, Text],
    stacks: Callable[[list[str]], StackReport],
) -> StackReport:
    """Collect the launch record, these texts and the stacks. Raises OSError only if the folder cannot be made."""
    make_private(folder)
    notes: list[str] = []
    files = list(write_launch_record(target, spec, folder, notes))
    for name, text in texts.items():
        if (content := text(notes)) and write_file(folder / name, content):
            files.append(str(folder / name))
    report = stacks(notes)
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


LOG_TAIL_BYTES = 1 << 20


def log_tail(path: str, lines: int, notes: list[str]) -> str:
    r"""The last lines of a log; ``\r`` counts as a line end. Reads at most 1 MiB."""
    try:
        with Path(path).open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - LOG_TAIL_BYTES))
            text = file.read(LOG_TAIL_BYTES).decode("utf-8", "replace")
    except OSError as fault:
        notes.append(f"the log {path} cannot be read: {fault.strerror}")
        return ""
    kept = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return "\n".join(kept[-lines - 1 :])


def write_file(path: Path, text: str) -> bool:
    """Write one file without secrets, mode 0600. False: it could not be written."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(EDGE.text(text))
    except OSError:
        return False
    return True


CONFIG_BYTES = 1 << 20
"""Most bytes of a config that are copied."""


def write_launch_record(target: AttemptTarget, spec: RunSpec, folder: Path, notes: list[str]) -> tuple[str, ...]:
    """Write ``launch.txt``, ``environment.txt`` and a copy of the config; returns their paths."""
    argv, cwd, env = _launch(target, spec, notes)
    hide = Redaction({**env, **spec.env})
    launch = [f"attempt {target.number}", f"in {cwd}", shlex.join(hide.words(argv))]
    files = {
        "launch.txt": "\n".join(launch) + "\n",
        "environment.txt": "".join(f"{line}\n" for line in shown_environment(env, hide)),
    }
    config = _config(target, spec)
    if config is not None:
        try:
            with config.open("rb") as file:
                text = file.read(CONFIG_BYTES).decode("utf-8", "replace")
        except OSError as fault:
            notes.append(f"the config {config} cannot be read: {fault.strerror}")
        else:
            files[f"config-{config.name}"] = hide.text(text)
    written = [folder / name for name, text in files.items() if write_file(folder / name, text)]
    return tuple(str(path) for path in written)


def shown_environment(env: Mapping[str, str], hide: Redaction) -> list[str]:
    """``NAME=value``, sorted; the value is hidden if the name is that of a secret."""
    return [f"{name}={HIDDEN if is_secret_name(name) else hide.text(value)}" for name, value in sorted(env.items())]


def _launch(target: AttemptTarget, spec: RunSpec, notes: list[str]) -> tuple[tuple[str, ...], str, dict[str, str]]:
    """(argv, cwd, environment) from the launch order, or for an adopted attempt from its process."""
    order = read_order(Path(target.directory))
    if order is not None:
        return order.argv, order.cwd, order.env
    root = Path(f"/proc/{target.trainer.pid}")
    try:
        argv = tuple(_split(root / "cmdline"))
        env = dict(entry.partition("=")[::2] for entry in _split(root / "environ"))
    except OSError as fault:
        notes.append(f"command line and environment of process {target.trainer.pid}: {fault.strerror}")
        return spec.command, spec.cwd, {}
    return argv, spec.cwd, env


def _split(path: Path) -> list[str]:
    return [part for part in path.read_bytes().decode("utf-8", "surrogateescape").split("\0") if part]


def _config(target: AttemptTarget, spec: RunSpec) -> Path | None:
    """The derived copy, or the user's own file if the launch used that."""
    if spec.config is None:
        return None
    derived = Path(target.directory, Path(spec.config).name)
    return derived if derived.is_file() else Path(spec.cwd, spec.config)


# One process as text for people, from ``/proc``: state, system call, children, threads, open files.
#
# Standard library only: the stack probe imports this.

PROC_FILES = ("cmdline", "status", "wchan", "syscall", "stack", "io", "limits")
THREADS = 256
OPEN_FILES = 128


def proc_text(process: processes.Process, children: list[processes.Process], notes: list[str]) -> str:
    """A section for each of PROC_FILES, then children, threads and open files. Unreadable parts show the error."""
    root = Path(f"/proc/{process.pid}")
    parts = [f"{process.name} ({process.pid}), state {process.state}, parent {process.parent}\n"]
    refused: list[str] = []
    parts.extend(f"== {name}\n{_content(root / name, refused)}\n" for name in PROC_FILES)
    parts.append("== children: pid, state, name")
    parts.extend(f"{child.pid} {child.state} {child.name}" for child in children if child.parent == process.pid)
    parts.append("\n== threads: tid, state, waits in, name")
    with contextlib.suppress(OSError):
        tasks = sorted((root / "task").iterdir(), key=lambda path: int(path.name))
        parts.extend(_thread_line(task) for task in tasks[:THREADS])
    parts.append("\n== open files")
    parts.extend(_open_files(root / "fd", refused))
    if refused:
        notes.append(f"process {process.pid} ({process.name}): not permitted to read {', '.join(refused)}")
    return "\n".join(parts) + "\n"


def _content(path: Path, refused: list[str]) -> str:
    try:
        raw = path.read_bytes()
    except OSError as fault:
        if isinstance(fault, PermissionError):
            refused.append(path.name)
        return f"– ({fault.strerror})"
    if path.name == "cmdline":
        return " ".join(Redaction().words(raw.decode("utf-8", "replace").rstrip("\0").split("\0")))
    return raw.decode("utf-8", "replace").strip()


def _thread_line(task: Path) -> str:
    try:
        name, _, rest = (task / "stat").read_text(errors="replace").partition("(")[2].rpartition(")")
        waits = (task / "wchan").read_text().strip()
    except OSError as fault:
        return f"{task.name} – ({fault.strerror})"
    return f"{task.name} {rest.split()[0]} {waits if waits not in {'', '0'} else '–'} {name}"


def _open_files(folder: Path, refused: list[str]) -> list[str]:
    try:
        numbers = sorted(int(name) for name in os.listdir(folder))  # noqa: PTH208
    except OSError as fault:
        if isinstance(fault, PermissionError):
            refused.append("fd")
        return [f"– ({fault.strerror})"]
    found = []
    for number in numbers[:OPEN_FILES]:
        with contextlib.suppress(OSError):
            found.append(f"{number} {os.readlink(folder / str(number))}")  # noqa: PTH115
    return found
