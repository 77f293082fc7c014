"""One process as text for people, from ``/proc``: state, system call, children, threads, open files.

Standard library only: the stack probe imports this.
"""

import contextlib
import os
from pathlib import Path

from ...model.text.redact import Redaction
from .. import processes

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
