"""Looks into a process tree without harming it: py-spy, ``/proc``, the end of the log, into a folder of plain files.

Also a program, ``python -P -m trainwatch.core.act.stack_probe REQUEST``: the runner starts it as its own child, because
the kernel (Yama) lets only relatives of the runner look into the trainer. Standard library only.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from . import desk, tree
from .ladder import STOPPED_STATES

PROCESSES = 16
"""At most so many are looked at, the trainer first: a hang shows in the first few."""
TOP_FRAMES = 4
LOG_TAIL_BYTES = 1 << 20
PROC_FILES = ("cmdline", "status", "wchan", "syscall", "stack", "io", "limits")
THREADS = 256


def find_py_spy() -> str | None:
    """py-spy beside our own Python, else on PATH."""
    beside = Path(sys.executable).parent / "py-spy"
    return str(beside) if os.access(beside, os.X_OK) else shutil.which("py-spy")


def capture(request: dict[str, Any]) -> dict[str, Any]:
    """Do what ``request`` asks; never raises for what the world does. Keys as written by ``stacks.capture_stacks``.

    Returns ``files`` (paths), ``frames`` ({pid: innermost frames of its main thread, newest round}), ``moved`` ({pid:
    whether its stacks differed between the rounds}), ``notes`` (sentences on what could not be seen).
    """
    folder = Path(request["folder"])
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    notes: list[str] = []
    files: list[str] = []
    deadline = time.monotonic() + request["budget_s"]
    processes = _alive(request["keys"])[:PROCESSES]
    if not processes:
        notes.append("the process tree is gone; only the log is left to look at")
    if request["log"] is not None:
        _keep(folder / "log-tail.txt", log_tail(request["log"], request["log_lines"], notes), files)
    for process in processes:
        _keep(folder / f"proc-{process.pid}.txt", proc_text(process), files)
    spy = request["py_spy"]
    stacks: dict[int, list[str]] = {process.pid: [] for process in processes}
    if spy is None:
        notes.append("py-spy was not found; install it beside trainwatch to see Python stacks")
    else:
        for turn in range(1, request["rounds"] + 1):
            if turn > 1:  # who could not be seen the first time will not be seen now
                processes = [process for process in processes if stacks[process.pid]]
                if not processes:
                    break
                time.sleep(max(0.0, min(request["pause_s"], deadline - time.monotonic())))
            for process in processes:
                left_s = deadline - time.monotonic()
                if left_s <= 0:
                    notes.append(f"out of time before process {process.pid} in round {turn}")
                    break
                text = dump(spy, process, min(request["timeout_s"], left_s), notes)
                if text is not None:
                    stacks[process.pid].append(text)
                    _keep(folder / f"stacks-{process.pid}-{turn}.txt", text, files)
    return {
        "files": files,
        "frames": {str(pid): main_frames(texts[-1]) for pid, texts in stacks.items() if texts},
        "moved": {str(pid): _body(texts[0]) != _body(texts[-1]) for pid, texts in stacks.items() if len(texts) > 1},
        "notes": list(dict.fromkeys(notes)),
    }


def dump(spy: str, process: tree.Process, timeout_s: float, notes: list[str]) -> str | None:
    """py-spy's picture of one process, taken without stopping it; None (and a note) when it cannot be had."""
    before = tree.look(process.pid)
    if before is None or before.start_ticks != process.start_ticks:
        return None
    try:
        # --nonblocking: stopping every thread has hung trainers and left them in state T (py-spy issues 390, 872).
        done = subprocess.run(
            [spy, "dump", "--nonblocking", "--pid", str(process.pid)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        notes.append(f"py-spy took more than {timeout_s:g} s on process {process.pid} ({process.name})")
        return None
    except OSError as fault:
        notes.append(f"py-spy could not be started: {fault}")
        return None
    finally:
        _let_go(before, notes)
    if done.returncode != 0 or not done.stdout.strip():
        notes.append(_refusal(process, done.stderr.decode("utf-8", "replace")))
        return None
    return done.stdout.decode("utf-8", "replace")


def main_frames(text: str) -> tuple[str, ...]:
    """The innermost frames of the main thread (else the first) in a py-spy dump."""
    threads: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if line.startswith("Thread "):
            threads.append((line, []))
        elif threads and line.startswith("    ") and ("(" in line):
            threads[-1][1].append(line.strip())
    chosen = next((frames for head, frames in threads if "MainThread" in head), threads[0][1] if threads else [])
    return tuple(chosen[:TOP_FRAMES])


def log_tail(path: str, lines: int, notes: list[str]) -> str:
    r"""The last lines of a log; a bar's ``\r`` counts as a line end. Reads at most 1 MiB."""
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


def proc_text(process: tree.Process) -> str:
    """What the kernel says about one process and its threads, one section per file."""
    root = Path(f"/proc/{process.pid}")
    parts = [f"{process.name} ({process.pid}), state {process.state}, parent {process.parent}\n"]
    for name in PROC_FILES:
        try:
            text = (root / name).read_bytes().replace(b"\0", b" ").decode("utf-8", "replace").strip()
        except OSError as fault:
            text = f"– ({fault.strerror})"
        parts.append(f"== {name}\n{text}\n")
    parts.append("== threads: tid, state, waits in, name\n")
    with contextlib.suppress(OSError):
        tasks = sorted((root / "task").iterdir(), key=lambda path: int(path.name))
        parts.extend(_thread_line(task) for task in tasks[:THREADS])
    return "\n".join(parts)


def _thread_line(task: Path) -> str:
    try:
        name, _, rest = (task / "stat").read_text(errors="replace").partition("(")[2].rpartition(")")
        waits = (task / "wchan").read_text().strip()
    except OSError as fault:
        return f"{task.name} – ({fault.strerror})"
    return f"{task.name} {rest.split()[0]} {waits if waits not in {'', '0'} else '–'} {name}"


def _alive(keys: list[list[int]]) -> list[tree.Process]:
    found = []
    for pid, start_ticks in keys:
        process = tree.look(pid)
        if process is not None and process.start_ticks == start_ticks and process.state not in tree.GONE_STATES:
            found.append(process)
    return found


def _let_go(before: tree.Process, notes: list[str]) -> None:
    after = tree.look(before.pid)
    if after is not None and after.state in STOPPED_STATES and before.state not in STOPPED_STATES:
        with contextlib.suppress(PermissionError):
            tree.send(before.key, signal.SIGCONT)
            notes.append(f"py-spy left process {before.pid} stopped; it was continued")


def _refusal(process: tree.Process, words: str) -> str:
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    said = lines[0].removeprefix("Error: ") if lines else "it said nothing"
    if "ermission" in words:
        return (
            f"py-spy may not look into process {process.pid} ({process.name}): {said} "
            "(kernel.yama.ptrace_scope; in a container it needs the capability SYS_PTRACE)"
        )
    return f"py-spy saw nothing in process {process.pid} ({process.name}): {said}"


def _body(text: str) -> str:
    """A dump without what differs between two looks at a still process (active/idle marks)."""
    return "\n".join(line for line in text.splitlines() if not line.startswith("Thread "))


def _keep(path: Path, text: str, files: list[str]) -> None:
    with contextlib.suppress(OSError):
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        files.append(str(path))


def main(arguments: list[str]) -> int:
    """Carry out the request file and put the answer beside it."""
    directory = os.path.dirname(os.path.abspath(arguments[0]))  # noqa: PTH100, PTH120
    request = desk.read(directory, desk.STACKS)
    if request is None:
        return 2
    desk.write(directory, desk.STACKS_DONE, {"request": request["request"]} | capture(request))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
