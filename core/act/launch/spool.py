"""The files through which runner and supervisor talk, all in the attempt's directory.

Standard library only. Each is one JSON object, written whole (temporary file, fsync, rename, fsync of the directory): a
reader sees the old one or the new one. Text from the system may hold bytes that are no UTF-8; the JSON is plain ASCII
with lone surrogates escaped, which is why it is read with :mod:`json` and not with a strict decoder.
"""
# No pathlib here: the runner stays small, and a look at every process fast.
# ruff: noqa: PTH105, PTH108, PTH118, PTH123

import contextlib
import json
import os
from typing import Any

ORDER = "order.json"
START = "start.json"
EXIT = "exit.json"
STOP = "stop.json"
STOPPED = "stopped.json"
STACKS = "stacks.json"
STACKS_DONE = "stacks-done.json"
CLAIM = "claim"
"""Created exclusively by whoever decides: the runner ("I start it") or the launcher ("too late, don't")."""
LOCK = "runner.lock"
RUNNER_LOG = "runner.log"
SOCKET = "pty.sock"
SOCKET_ELSEWHERE = "pty.path"


def write(directory: str, name: str, content: dict[str, Any]) -> None:
    """Put one file on the desk, mode 0600, atomically and durably. Raises OSError."""
    path = os.path.join(directory, name)
    temporary = f"{path}.{os.getpid()}.tmp"
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            json.dump(content, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    folder = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def read(directory: str, name: str) -> dict[str, Any] | None:
    """What the file says; None when there is none or it cannot be read as an object."""
    try:
        with open(os.path.join(directory, name), encoding="utf-8", errors="surrogateescape") as file:
            content = json.load(file)
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None


def remove(directory: str, name: str) -> None:
    """Take a file off the desk, if it is there."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(os.path.join(directory, name))


def claim(directory: str) -> bool:
    """Decide whether the order is carried out; True for the first who asks, False for everyone after."""
    try:
        handle = os.open(os.path.join(directory, CLAIM), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return False
    os.close(handle)
    return True
