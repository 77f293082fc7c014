"""The client's end of the control socket, and what both ends agree on: where it is, how long a line may be."""

import contextlib
import os
import socket
import stat
import struct
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec

from ..model.control_messages import Reply, Request
from ..model.text.json_line import encode_line
from .home import make_private
from .lock import is_held
from .run_directory import RunDirectory

LINE_BYTES = 65_536
"""Longest request. Replies may be longer: they are ours."""
REPLY_BYTES = 16 * 1024 * 1024
PATH_BYTES = 107
"""Longest path the kernel takes for a Unix socket."""
_RETRY_S = 0.05


class ControlError(Exception):
    """A command did not get through. The message is a sentence for people."""


class NoSupervisor(ControlError):  # noqa: N818  named for what is the case
    """Nobody supervises this run, so nobody can take the command."""


class SupervisorSilent(ControlError):  # noqa: N818  named for what is the case
    """A supervisor lives but did not answer in time. Whether it took the command is unknown."""


class ControlAddress(msgspec.Struct, frozen=True, kw_only=True):
    """``control.json``: where the supervisor listens."""

    version: int = 1
    socket: str
    pid: int


def socket_folder(env: Mapping[str, str]) -> Path:
    """Return a folder for sockets that only we can enter, made when missing.

    ``$XDG_RUNTIME_DIR/trainwatch``, else ``trainwatch-UID`` in the temporary folder; where somebody else sits on that
    name, a fresh one. Raises OSError.
    """
    runtime = env.get("XDG_RUNTIME_DIR")
    candidates = [Path(runtime) / "trainwatch"] if runtime and Path(runtime).is_absolute() else []
    temporary = Path(env.get("TMPDIR") or "/tmp")  # noqa: S108  checked for its owner and mode below
    candidates += [temporary / f"trainwatch-{os.geteuid()}", Path(f"/tmp/trainwatch-{os.geteuid()}")]  # noqa: S108
    for folder in candidates:
        if len(os.fsencode(folder)) + len("/01234567.sock") > PATH_BYTES or not folder.parent.is_dir():
            continue
        with contextlib.suppress(OSError):
            make_private(folder)
            if _is_private(folder):
                return folder
    return Path(tempfile.mkdtemp(prefix=f"trainwatch-{os.geteuid()}-", dir="/tmp"))


def peer_uid(connection: socket.socket) -> int:
    """Return the user at the other end, as the kernel knows it (SO_PEERCRED). Raises OSError."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", credentials)[1])


def is_trusted(uid: int) -> bool:
    """Whether this user may command, or answer: ourselves, and root, who can do anything anyway."""
    return uid in (os.geteuid(), 0)


def send(run_directory: RunDirectory, request: Request, timeout_s: float = 5.0) -> Reply:
    """Ask the run's supervisor and return its answer.

    Waits for a supervisor that is just starting (it holds the lock but does not listen yet). The request is sent once
    at most. Raises NoSupervisor, SupervisorSilent (both ControlError, each with a sentence).
    """
    deadline = time.monotonic() + timeout_s
    connection = _connect(run_directory, deadline)
    with connection:
        try:
            connection.settimeout(max(deadline - time.monotonic(), _RETRY_S))
            connection.sendall(encode_line(request))
            line = _read_line(connection, deadline)
            return msgspec.json.decode(line, type=Reply)
        except TimeoutError as error:
            raise SupervisorSilent(
                f"the supervisor of {run_directory.id} did not answer within {timeout_s:g} s; "
                "`trainwatch events` shows whether it took the command"
            ) from error
        except (OSError, msgspec.MsgspecError) as error:
            raise SupervisorSilent(
                f"the supervisor of {run_directory.id} ended the conversation ({error}); "
                "`trainwatch events` shows whether it took the command"
            ) from error


def _connect(run_directory: RunDirectory, deadline: float) -> socket.socket:
    while True:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        try:
            address = msgspec.json.decode(run_directory.control.read_bytes(), type=ControlAddress)
            connection.settimeout(max(deadline - time.monotonic(), _RETRY_S))
            connection.connect(address.socket)
            trusted = is_trusted(peer_uid(connection))
        except (OSError, msgspec.MsgspecError):
            connection.close()
            alive = is_held(run_directory.lock)
        else:
            if trusted:
                return connection
            connection.close()
            raise ControlError(f"{address.socket} belongs to another user; not talking to it")
        if not alive:
            raise NoSupervisor(
                f"no supervisor is running for {run_directory.id}; `trainwatch resume {run_directory.id}` starts one"
            )
        if time.monotonic() >= deadline:
            raise SupervisorSilent(f"the supervisor of {run_directory.id} lives but does not listen (yet); try again")
        time.sleep(_RETRY_S)


def _read_line(connection: socket.socket, deadline: float) -> bytes:
    data = bytearray()
    while not data.endswith(b"\n"):
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            raise TimeoutError
        connection.settimeout(remaining)
        received = connection.recv(65_536)
        if not received:
            raise ConnectionError("closed before it answered")
        data += received
        if len(data) > REPLY_BYTES:
            raise ConnectionError("an answer without an end")
    return bytes(data)


def _is_private(folder: Path) -> bool:
    """Whether it is a real folder of ours that nobody else may enter (anybody can make a name in /tmp)."""
    status = folder.lstat()
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o077
