"""The spool: files in the attempt's directory through which runner and supervisor exchange requests and reports.

Standard library only. Each file is one JSON object and is replaced atomically. Paths may contain bytes that are not
UTF-8; the JSON is ASCII with escaped lone surrogates, so it is read with :mod:`json` and not with a strict decoder.
"""
# No pathlib here: it keeps the runner small.
# ruff: noqa: PTH108, PTH118, PTH123

import contextlib
import os
from typing import TYPE_CHECKING, Any, TypeVar

from .atomic_files import write_atomically

if TYPE_CHECKING:
    from .model.run import ExitRecord, JobRecord, LaunchOrder, StartRecord

Record = TypeVar("Record")

ORDER = "order.json"
START = "start.json"
EXIT = "exit.json"
LEFT = "left.json"
"""Written when the command has ended and processes of it are left: which of them work, and where they print to."""
JOB = "job.json"
STOP = "stop.json"
STOPPED = "stopped.json"
STACKS = "stacks.json"
STACKS_DONE = "stacks-done.json"
CLAIM = "claim"
"""Created exclusively, either by the runner, which then starts the trainer, or by a launcher that stopped waiting."""
LOCK = "runner.lock"
RUNNER_LOG = "runner.log"
SOCKET = "pty.sock"


def write(directory: str, name: str, content: dict[str, Any]) -> None:
    """Replace one file atomically and durably, mode 0600. Raises OSError."""
    import json

    write_atomically(os.path.join(directory, name), json.dumps(content).encode("ascii"))


def read(directory: str, name: str) -> dict[str, Any] | None:
    """The content of a file; None if it does not exist or is not a JSON object."""
    import json  # who only needs the names of the files does not load it

    try:
        with open(os.path.join(directory, name), encoding="utf-8", errors="surrogateescape") as file:
            content = json.load(file)
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None


def say(text: str) -> None:
    """A line in ``runner.log``, which is the standard error of who calls this, if there is room for it."""
    with contextlib.suppress(OSError):
        os.write(2, f"{text}\n".encode("utf-8", "replace"))


def print_into(log: str | os.PathLike[str]) -> None:
    """Send what this process prints to the end of a log, and keep no terminal or pipe open."""
    nothing = os.open(os.devnull, os.O_RDWR)
    output = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    for number, handle in ((0, nothing), (1, output), (2, output)):
        os.dup2(handle, number)
    for handle in {nothing, output} - {0, 1, 2}:
        os.close(handle)


def remove(directory: str, name: str) -> None:
    """Remove a file if it exists."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(os.path.join(directory, name))


def claim(directory: str) -> bool:
    """Claim the order. True for the first caller, False for all later ones."""
    try:
        handle = os.open(os.path.join(directory, CLAIM), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return False
    os.close(handle)
    return True


def read_start(directory: str | os.PathLike[str]) -> "StartRecord | None":
    """``start.json`` of an attempt; None if it does not exist yet or is of another version."""
    from .model.run import StartRecord

    return read_record(directory, START, StartRecord)


def read_exit(directory: str | os.PathLike[str]) -> "ExitRecord | None":
    """``exit.json`` of an attempt; None while the trainer runs, or if its runner died first."""
    from .model.run import ExitRecord

    return read_record(directory, EXIT, ExitRecord)


def read_order(directory: str | os.PathLike[str]) -> "LaunchOrder | None":
    """``order.json`` of an attempt, or None."""
    from .model.run import LaunchOrder

    return read_record(directory, ORDER, LaunchOrder)


def read_job(directory: str | os.PathLike[str]) -> "JobRecord | None":
    """``job.json``: the newest that is known of an attempt's job; None if it runs as none, or it was not submitted."""
    from .model.run import JobRecord

    return read_record(directory, JOB, JobRecord)


def read_record(directory: str | os.PathLike[str], name: str, kind: type[Record]) -> Record | None:
    """A file as this kind of record; None if there is none that is whole. The runner loads none of this."""
    import msgspec

    from .model.json_line import decode_exact

    try:
        with open(os.path.join(directory, name), "rb") as file:
            return decode_exact(file.read(), kind)
    except (OSError, msgspec.MsgspecError):
        return None
