"""Requests to a tmux server through libtmux, each with a deadline.

libtmux has no time limits, and its look-ups (``Server.sessions``, ``Window.panes``) start ``tmux`` without
``Server.cmd``, so a stopped tmux server would block the caller forever. Each request is therefore carried out by a
child process (``libtmux_child``), which is ended together with the ``tmux`` client that it waits for when the deadline
has passed. A request takes about 0.3 s, most of it the start of Python and libtmux.
"""

import contextlib
import os
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Mapping
from typing import Literal, TypeAlias, TypeVar

import msgspec

from ...bound_process import bound
from ...model.settings import Tmux

DEADLINE_S = 5.0
"""For all commands of a request together; tmux answers one within 4 ms."""
CHILD_START_S = 20.0
"""The deadline begins when the child has loaded libtmux, which can take seconds from a slow disk."""
MARK = "@trainwatch"
"""Session option: id of the run that the session shows. A session without it belongs to the user."""

T = TypeVar("T")
Fault: TypeAlias = Literal["missing", "deadline", "failed"]


class TmuxError(Exception):
    """tmux did not do what was asked. The message is a clause without a full stop.

    ``fault``: "missing", there is no usable tmux; "deadline", no answer in time; "failed", an error of tmux or libtmux.
    """

    def __init__(self, fault: Fault, message: str) -> None:
        super().__init__(message)
        self.fault = fault


class ShowView(msgspec.Struct, frozen=True, tag=True):
    """Show ``command`` in the session of the run ``mark``; if it has none, make one with the first free name."""

    mark: str
    names: tuple[str, ...]
    command: tuple[str, ...]
    environment: dict[str, str]
    status_left: str


class ShownView(msgspec.Struct, frozen=True):
    """``session``: its name. ``again``: the session was there already."""

    session: str
    again: bool


class FindSessions(msgspec.Struct, frozen=True, tag=True):
    """Find the session of the run ``mark``, and which of ``names`` are names of sessions."""

    mark: str
    names: tuple[str, ...] = ()


class FoundSessions(msgspec.Struct, frozen=True):
    """``own``: name of the run's session. ``socket_path``: of its server. ``named``: the names in use."""

    own: str | None = None
    socket_path: str | None = None
    named: tuple[str, ...] = ()


class CloseSession(msgspec.Struct, frozen=True, tag=True):
    """End the session of the run ``mark``; with ``unless_attached`` only if no terminal shows it.

    Result: bool, whether a session was ended.
    """

    mark: str
    unless_attached: bool


class ListPanes(msgspec.Struct, frozen=True, tag=True):
    """``format`` for each pane of the server, of a session, or for the one pane that is the target.

    Result: str, one line for each pane.
    """

    scope: Literal["server", "session", "pane"]
    target: str
    format: str


class CopyPane(msgspec.Struct, frozen=True, tag=True):
    """Read the pane's history and pipe what follows into ``command``, in one turn of the tmux server.

    Result: str. Its first line is ``#{pane_pipe}#{cursor_x}``; a pane with ``1`` is piped already and stays as it is.
    The history follows.
    """

    pane: str
    command: str


class DetachClient(msgspec.Struct, frozen=True, tag=True):
    """Detach the terminal on which a key was pressed last from the server of ``$TMUX``. Result: None."""


Request: TypeAlias = ShowView | FindSessions | CloseSession | ListPanes | CopyPane | DetachClient


class Call(msgspec.Struct, frozen=True):
    """What the child reads: the socket name (``tmux -L``) and the request."""

    socket: str | None
    deadline_s: float
    request: Request


class Reply(msgspec.Struct, frozen=True):
    """What the child writes: a result, or a fault with its message."""

    result: msgspec.Raw = msgspec.Raw(b"null")
    fault: Fault | None = None
    message: str = ""


def ask(
    settings: Tmux,
    environ: Mapping[str, str],
    request: Request,
    result: type[T] | None,
    *,
    deadline_s: float = DEADLINE_S,
) -> T:
    """Carry out one request. Raises TmuxError."""
    if shutil.which("tmux", path=environ.get("PATH")) is None:
        raise TmuxError("missing", "tmux is not installed (apt install tmux)")
    output, errors, status = _run_child(Call(settings.socket, deadline_s, request), environ)
    try:
        reply = msgspec.json.decode(output, type=Reply)
        if reply.fault is None:
            return msgspec.json.decode(reply.result, type=result)
    except msgspec.DecodeError as fault:
        last = errors.decode("utf-8", "replace").strip().splitlines()[-1:]
        reason = last[0] if last else f"exit status {status}"
        raise TmuxError("failed", f"libtmux ended without a reply ({reason})") from fault
    raise TmuxError(reply.fault, reply.message)


def popup_command(session: str) -> list[str]:
    """argv that shows a session in a popup over a terminal that shows another session of the same server."""
    return [*_CHILD, session]


def no_answer(deadline_s: float) -> str:
    """Message of a request whose deadline has passed."""
    return f"the tmux server did not answer within {deadline_s:g} s"


_CHILD = (sys.executable, "-P", "-m", f"{__package__}.libtmux_child")


def _run_child(call: Call, environ: Mapping[str, str]) -> tuple[bytes, bytes, int]:
    try:
        child = subprocess.Popen(
            bound(_CHILD, at_end=signal.SIGALRM), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=dict(environ), cwd="/", start_new_session=True,
        )  # fmt: skip
    except (OSError, ValueError) as fault:
        raise TmuxError("failed", f"libtmux could not be started: {fault}") from fault
    with child:
        try:
            output, errors = child.communicate(msgspec.json.encode(call), timeout=call.deadline_s + CHILD_START_S)
        except BaseException as fault:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            if isinstance(fault, subprocess.TimeoutExpired):
                raise TmuxError("deadline", no_answer(call.deadline_s)) from fault
            raise
    return output, errors, child.returncode


# Whether a terminal is attached to the tmux server of this pane, told without asking the server.
#
# tmux makes its socket executable while a terminal is attached to any of its sessions, and takes that back afterwards
# (``server_update_socket`` in its server.c; screen does the same). A look at the mode costs one ``stat``, a question
# to the server starts two processes.


def is_terminal_attached(environ: Mapping[str, str]) -> bool:
    """``environ``: of a program in a pane. Unknown (no tmux, a socket that was removed) counts as yes."""
    socket = environ.get("TMUX", "").partition(",")[0]
    try:
        return not socket or bool(os.stat(socket).st_mode & stat.S_IXUSR)  # noqa: PTH116  once a second, in a small program
    except OSError:
        return True
