"""The client side of the control socket, and what both sides share: its place and the longest line."""

import contextlib
import os
import socket
import struct
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec

from ..model.json_line import decode_exact, encode_exact, encode_line
from ..model.observation import ENDING, Command, Reply, Request
from ..model.text import typed
from ..private_folder import check_private
from ..processes import status_of
from ..spool import read_record
from .home import write_atomically
from .lock import is_held
from .run_directory import RunDirectory

LINE_BYTES = 65_536
"""Longest request in bytes. Replies may be longer, because the supervisor sends them."""
REPLY_BYTES = 16 * 1024 * 1024
PATH_BYTES = 107
"""Longest path that the kernel accepts for a Unix socket."""
_RETRY_S = 0.05
ENDING_S = 30.0
"""Longest wait for a supervisor that takes no command any more: a last notice may take seconds."""


class ControlError(Exception):
    """A command was not answered. The message is a sentence for the user."""


class NoSupervisor(ControlError):  # noqa: N818  named after the condition
    """No supervisor runs for this run."""


class SupervisorSilent(ControlError):  # noqa: N818  named after the condition
    """The supervisor is alive but did not answer in time. What it has not read by then it does not carry out."""


class ControlAddress(msgspec.Struct, frozen=True, kw_only=True):
    """``control.json``: where the supervisor listens."""

    version: int = 1
    socket: str
    pid: int


ONCE = f"trainwatch-{os.geteuid()}-"
"""Begins the name of a folder with one socket, which goes with it."""


def socket_folder(env: Mapping[str, str], longest_name: int = len("01234567.sock")) -> Path:
    """Return a folder for sockets that only this user can enter; it is made if missing.

    ``longest_name``: bytes of the longest name that a socket there gets.

    ``$XDG_RUNTIME_DIR/trainwatch``, else ``trainwatch-UID`` in the temporary folder, or a new folder if that
    name belongs to another user; its name begins with ``ONCE``. Raises OSError.
    """
    runtime = env.get("XDG_RUNTIME_DIR")
    candidates = [Path(runtime) / "trainwatch"] if runtime and Path(runtime).is_absolute() else []
    temporary = Path(env.get("TMPDIR") or "/tmp")  # noqa: S108  checked for its owner and mode below
    candidates += [temporary / f"trainwatch-{os.geteuid()}", Path(f"/tmp/trainwatch-{os.geteuid()}")]  # noqa: S108
    for folder in candidates:
        if len(os.fsencode(folder)) + 1 + longest_name > PATH_BYTES or not folder.parent.is_dir():
            continue
        with contextlib.suppress(OSError):
            check_private(str(folder))
            return folder
    import tempfile  # slow to import, and rarely needed

    return Path(tempfile.mkdtemp(prefix=ONCE, dir="/tmp"))


def peer_uid(connection: socket.socket) -> int:
    """Return the user id of the other side from the kernel (SO_PEERCRED). Raises OSError."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", credentials)[1])


def is_trusted(uid: int) -> bool:
    """Whether this user may send commands and answers: the same user, and root."""
    return uid in (os.geteuid(), 0)


def send(run_directory: RunDirectory, request: Request, timeout_s: float = 5.0) -> Reply:
    """Send a request to the run's supervisor and return its reply.

    Waits for a supervisor that is starting (it holds the lock but does not listen yet), and for the end of one that
    takes no command any more. The request is judged once at most. Raises NoSupervisor, SupervisorSilent (both
    ControlError, each with a sentence).
    """
    end = time.monotonic() + ENDING_S
    while True:
        reply = _exchange(run_directory, request, timeout_s)
        left_s = end - time.monotonic()
        if not reply.data.get(ENDING) or left_s <= 0.0:
            return reply
        timeout_s = max(timeout_s, left_s)
        time.sleep(_RETRY_S)


def _exchange(run_directory: RunDirectory, request: Request, timeout_s: float) -> Reply:
    deadline = time.monotonic() + timeout_s
    with _connect(run_directory, deadline) as connection:
        try:
            connection.settimeout(max(deadline - time.monotonic(), _RETRY_S))
            connection.sendall(encode_line(request))
            return msgspec.json.decode(_read_line(connection, deadline), type=Reply)
        except TimeoutError as error:
            raise SupervisorSilent(
                f"the supervisor of {run_directory.id} did not answer within {timeout_s:g} s; "
                f"`{typed('events', run_directory.id)}` shows whether it took the command"
            ) from error
        except (OSError, msgspec.MsgspecError) as error:
            raise SupervisorSilent(
                f"the supervisor of {run_directory.id} ended the conversation ({error}); "
                f"`{typed('events', run_directory.id)}` shows whether it took the command"
            ) from error


def leave_order(run_directory: RunDirectory, command: Command) -> None:
    """Leave a command for a supervisor that does not answer. Raises OSError."""
    write_atomically(run_directory.order, encode_exact(command))


def order_left(run_directory: RunDirectory, now_t: float) -> Command | None:
    """What was left and not carried out yet, with the time at which it was (run seconds, which are ``now_t`` now)."""
    left, status = read_record(run_directory.path, run_directory.order.name, Command), status_of(run_directory.order)
    if left is None or status is None:
        return None
    return msgspec.structs.replace(left, t=now_t - max(0.0, time.time() - status.st_mtime))


def take_order(run_directory: RunDirectory) -> Command | None:
    """Take away what was left, to carry it out or so that nobody does: it has one taker. None: nothing is there."""
    mine = run_directory.order.with_suffix(f".{os.getpid()}")
    try:
        run_directory.order.rename(mine)
        return decode_exact(mine.read_bytes(), Command)
    except (OSError, msgspec.MsgspecError):
        return None
    finally:
        with contextlib.suppress(OSError):
            mine.unlink()


def _connect(run_directory: RunDirectory, deadline: float) -> socket.socket:
    while True:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        try:
            address = decode_exact(run_directory.control.read_bytes(), ControlAddress)
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
                f"no supervisor is running for {run_directory.id}; `{typed('resume', run_directory.id)}` starts one"
            )
        if time.monotonic() >= deadline:
            raise SupervisorSilent(
                f"the supervisor of {run_directory.id} is alive but does not listen (yet); try again"
            )
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
