"""Collects the evidence of why an attempt hung or died into the incident's folder, before the attempt is ended.

These are Python stacks (twice, and native frames), ``/proc`` of each process, the end of the log, the GPUs and the
processes on them, the end of the kernel log, and the launch record. Every part may be missing; ``notes.txt`` lists
what could not be read and why.
"""

import contextlib
import os
import re
import shlex
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ... import processes, spool
from ...model.observation import GpuReading
from ...model.ports import AttemptTarget
from ...model.redact import EDGE, HIDDEN, Redaction, is_secret_name
from ...model.run import RunSpec
from ...model.text import GIB
from ...private_folder import make_private
from ...spool import read_order
from ..gpu_clearing import Holder, gpu_holders
from ..save_request import dump_stacks
from ..stopping import ask_runner, members

# Captures the stacks of an attempt's processes through its runner, or directly if there is no live runner.

MARGIN_S = 2.0
"""For the probe's Python to start and for its answer to be written."""
BUDGET_S = 24.0
"""For all dumps together. The judge waits 30 s for evidence and then ends the attempt without it."""
DUMP_S = 5.0
"""For one dump."""
QUICK_S = 5.0
"""For a last quick dump, if the runner used the budget without an answer."""
LOOKS_S, LOOK_S, NATIVE_S = 12.0, 2.0, 8.0
"""The same of looks for loops: all, one, and those at native frames."""
LOG_LINES = 200
IDLE_WORKER = "_worker_loop ("
"""Frame of a data loader worker that waits for work."""
LATER = {None: "", False: ", and stayed there", True: ", and moved on"}


class StackReport(msgspec.Struct, frozen=True, kw_only=True):
    """``frames``: innermost frames of the main thread per pid; ``moved``: whether they differ, where that is known.

    ``native``: the same with native frames, of processes that stayed in one. ``notes``: sentences about what could not
    be read and why. ``by``: the process that ran py-spy.
    """

    files: tuple[str, ...]
    frames: dict[int, tuple[str, ...]] = {}
    moved: dict[int, bool] = {}
    native: dict[int, tuple[str, ...]] = {}
    notes: tuple[str, ...] = ()
    by: str = "supervisor"

    @property
    def sentence(self) -> str:
        """Where the first process is and which workers do not wait for work, or why there is no stack (a sentence)."""
        text = ""
        for pid, frames in self.frames.items():
            where, below = telling_frame(frames), telling_frame(self.native.get(pid, ()))
            if where is None:
                continue
            where = where if below in {None, where} else f"{below}, called by {where}"
            if not text:
                text = f"process {pid} was in {where}{LATER[self.moved.get(pid)]}"
            elif self.moved.get(pid) is not True and not any(IDLE_WORKER in frame for frame in (where, frames[0])):
                text += f"; process {pid} in {where}"
        return text or (self.notes[0] if self.notes else "no Python stack was seen")


def stack_request(
    folder: Path, *, pause_s: float, budget_s: float = BUDGET_S, log: str | None = None
) -> dict[str, Any]:
    """What ``stack_probe.capture`` is asked for, but for the ``keys`` of the processes.

    py-spy dumps each process twice, ``pause_s`` apart, within ``budget_s`` for all. Processes that stayed in one place
    are dumped again with native frames, which stops them for some milliseconds; otherwise the trainer is not stopped.
    """
    from .loop_looks import find_py_spy  # a quarter of a megabyte, for incidents

    return {
        "folder": str(folder),
        "log": log,
        "log_lines": LOG_LINES,
        "rounds": 2,
        "pause_s": pause_s,
        "timeout_s": DUMP_S,
        "budget_s": budget_s,
        "py_spy": find_py_spy(),
    }


def capture_stacks(target: AttemptTarget, folder: Path, *, pause_s: float) -> StackReport:
    """Write stacks, ``/proc`` states and the end of the log of an attempt into ``folder`` (made, mode 0700).

    Blocks at most about BUDGET_S. Raises OSError only if the folder cannot be made.
    """
    begun = time.monotonic()
    make_private(folder)
    keys = _keys(target)
    request = stack_request(folder, pause_s=pause_s, log=target.log) | {"keys": keys}
    answer = _ask_runner(target, request) if keys else None
    by = "supervisor" if answer is None else "runner"
    if answer is None:
        from .stack_probe import capture

        late = time.monotonic() - begun > BUDGET_S
        answer = capture(request | {"rounds": 1, "budget_s": QUICK_S} if late else request)
    return joined([msgspec.convert(answer, StackReport, strict=False)], by)


def joined(reports: Sequence[StackReport], by: str) -> StackReport:
    """One report of several, as of the nodes of a job. ``by``: what ran py-spy."""
    return StackReport(
        files=tuple(file for each in reports for file in each.files),
        frames={pid: frames for each in reports for pid, frames in each.frames.items()},
        moved={pid: moved for each in reports for pid, moved in each.moved.items()},
        native={pid: frames for each in reports for pid, frames in each.native.items()},
        notes=tuple(note for each in reports for note in each.notes),
        by=by,
    )


def look_for_loops(target: AttemptTarget, *, pause_s: float, gpu: bool = False) -> dict[str, Any]:
    """Look whether all that is busy in an attempt is in loops that change nothing (loop_looks.py). Writes no evidence.

    Blocks ``pause_s`` and the time of the looks, at most about LOOKS_S. ``gpu``: look for threads that wait for their
    GPU, too, which stops each of these processes once for about a second, at most NATIVE_S for all.
    """
    from .loop_looks import find_py_spy

    request = {
        "loops": True,
        "keys": _keys(target),
        "pause_s": pause_s,
        "budget_s": LOOKS_S,
        "timeout_s": LOOK_S,
        "native_s": NATIVE_S if gpu else 0.0,
        "py_spy": find_py_spy(),
    }
    answer = _ask_runner(target, request)
    if answer is None:
        from .loop_looks import look

        answer = look(request)
    return answer


def _keys(target: AttemptTarget) -> list[tuple[int, int]]:
    trainer = (target.trainer.pid, target.trainer.start_ticks)
    living = members(target) if target.trainer.boot_id == processes.boot_id() else []
    return sorted((process.key for process in living), key=lambda key: (key != trainer, key))


def _ask_runner(target: AttemptTarget, request: dict[str, Any]) -> dict[str, Any] | None:
    """What the probe of a live runner found; None if there is none, or if it did not answer in time."""
    limit_s = request["budget_s"] + request["timeout_s"] + request.get("native_s", 0.0) + MARGIN_S
    request = request | {"request": os.urandom(8).hex()}
    return ask_runner(target, (spool.STACKS, spool.STACKS_DONE), request, signal.SIGUSR2, limit_s=limit_s)


# Parses py-spy's dumps: frames of the main thread, and the frame that shows what the process is doing.

FRAMES = 24
"""A loader that waits for its workers does so six frames above ``_try_get_data``; a collective's native part is
deeper still."""
WAITING_PLACES = re.compile(
    r"\((?:.*/)?(?:threading|selectors|queue|socket|subprocess|ssl|popen_\w+|concurrent/futures/\w+|"
    r"multiprocessing/(?:connection|queues|synchronize|process|context|popen_\w+|util)|"
    r"asyncio/\w+)\.py:\d+\)"
    r"|\((?:(?:libc|libpthread|libffi|ld-linux)[.-][\w.+-]*|libpython[\w.]*|"
    r"(?:_ctypes|callproc|_threadmodule|thread_pthread)\.\w+)(?::\d+)?\)"
    r"|^0x|^ffi_call"
)
"""Frames that only wait. Their caller shows for what."""


def main_frames(text: str) -> tuple[str, ...]:
    """The innermost frames of the main thread (else the first) in a py-spy dump, innermost first."""
    threads: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if line.startswith("Thread "):
            threads.append((line, []))
        elif threads and line.startswith("    ") and "(" in line:
            threads[-1][1].append(line.strip())
    chosen = next((frames for head, frames in threads if "MainThread" in head), threads[0][1] if threads else [])
    return tuple(chosen[:FRAMES])


def telling_frame(frames: tuple[str, ...]) -> str | None:
    """The innermost frame that does not only wait; None without frames."""
    return next((frame for frame in frames if not WAITING_PLACES.search(frame)), frames[0] if frames else None)


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
        notes.append("the stacks are from the trainer's own faulthandler (trainbeat)")
        return msgspec.structs.replace(report, files=(str(own), *report.files))

    def kernel_log(notes: list[str]) -> str:
        try:
            return "".join(f"{line}\n" for line in kernel_tail(KERNEL_LINES))
        except OSError as fault:
            notes.append(f"the kernel log cannot be read: {fault.strerror or fault}")
            return ""

    texts: dict[str, Text] = {
        "gpu.txt": lambda _notes: gpu_text(gpus, gpu_holders()),
        "kernel-log.txt": kernel_log,
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
    files: list[str] = []

    def write(name: str, content: str) -> None:
        if write_file(folder / name, content):
            files.append(str(folder / name))

    for name, content in launch_record(target, spec, notes).items():
        write(name, content)
    for name, text in texts.items():
        if content := text(notes):
            write(name, content)
    report = stacks(notes)
    notes = list(dict.fromkeys((*report.notes, *notes)))
    if notes:
        write("notes.txt", "".join(f"{note}\n" for note in notes))
    return msgspec.structs.replace(report, files=(*files, *report.files), notes=tuple(notes))


def pause_s(spec: RunSpec) -> float:
    """Return how long to wait for a process to show that it moves, in seconds."""
    return min(PAUSE_S, spec.settings.hang.min_s * PAUSE_SHARE)


def gpu_text(gpus: Sequence[GpuReading] | None, holders: Sequence[Holder]) -> str:
    """A line for each GPU with its last reading, and one for each process that has a GPU open."""
    lines = []
    for gpu in gpus or ():
        values = (
            ("utilisation", gpu.util_pct, 1, "%"),
            ("memory used", gpu.mem_used_bytes, GIB, "GiB"),
            ("of", gpu.mem_total_bytes, GIB, "GiB"),
            ("temperature", gpu.temp_c, 1, "°C"),
            ("power", gpu.power_w, 1, "W"),
            ("clock", gpu.clock_mhz, 1, "MHz"),
        )
        shown = [f"{name} {'–' if value is None else f'{value / per:.3g} {unit}'}" for name, value, per, unit in values]
        throttle = f", held down by: {', '.join(gpu.throttle)}" if gpu.throttle else ""
        trouble = f"; {gpu.trouble}" if gpu.trouble else ""
        lines.append(f"GPU {gpu.index} {gpu.name or ''}: {', '.join(shown)}{throttle}{trouble}")
    lines = lines or ["no GPU telemetry"]
    lines += [f"held by {holder.sentence}" for holder in holders] or ["no visible process has a GPU open"]
    return "\n".join(lines) + "\n"


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


def launch_record(target: AttemptTarget, spec: RunSpec, notes: list[str]) -> dict[str, str]:
    """``launch.txt``, ``environment.txt`` without values of secrets, and the config, without secrets.

    From the launch order, or for an adopted attempt from its process.
    """
    order, pid = read_order(Path(target.directory)), target.trainer.pid
    argv, cwd, env = (spec.command, spec.cwd, dict[str, str]()) if order is None else (order.argv, order.cwd, order.env)
    if order is None:
        variables = processes.variables_of(pid)
        if variables is None:
            notes.append(f"command line and environment of process {pid} cannot be read")
        else:
            argv = tuple(os.fsdecode(word) for word in processes.words_of(pid) if word)
            env = dict(os.fsdecode(each).partition("=")[::2] for each in variables if each)
    hide = Redaction({**env, **spec.env})
    shown = [f"{name}={HIDDEN if is_secret_name(name) else hide.text(value)}" for name, value in sorted(env.items())]
    texts = {
        "launch.txt": f"attempt {target.number}\nin {cwd}\n{shlex.join(hide.words(argv))}\n",
        "environment.txt": "".join(f"{line}\n" for line in shown),
    }
    if spec.config is not None:
        derived = Path(target.directory, Path(spec.config).name)
        config = derived if derived.is_file() else Path(spec.cwd, spec.config)
        try:
            with config.open("rb") as file:
                texts[f"config-{config.name}"] = hide.text(file.read(CONFIG_BYTES).decode("utf-8", "replace"))
        except OSError as fault:
            notes.append(f"the config {config} cannot be read: {fault.strerror}")
    return texts


# One process as text for people, from ``/proc``: state, system call, children, threads, open files.

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
