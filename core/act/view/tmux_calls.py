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
from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

import msgspec

from ...bound_process import bound
from ...model.settings import Tmux

DEADLINE_S = 5.0
"""For all commands of a request together; tmux answers one within 4 ms."""
CHILD_START_S = 20.0
"""The deadline begins when the child has loaded libtmux, which can take seconds from a slow disk."""
SEPARATOR = "\x1f"
"""Between the fields of a line that tmux is asked for."""
MARK = "@trainwatch"
"""Session option: id of the run that the session shows. A session without it belongs to the user."""

Fault: TypeAlias = Literal["missing", "deadline", "failed"]


class TmuxError(Exception):
    """tmux did not do what was asked. The message is a clause without a full stop.

    ``fault``: "missing", there is no usable tmux; "deadline", no answer in time; "failed", an error of tmux or libtmux.
    """

    def __init__(self, fault: Fault, message: str) -> None:
        super().__init__(message)
        self.fault = fault


class ShowView(msgspec.Struct, frozen=True):
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


class Call(msgspec.Struct, frozen=True):
    """What the child reads. ``socket``: as of ``tmux -L``. ``request``: a view, or the words of tmux commands."""

    socket: str | None
    deadline_s: float
    request: ShowView | tuple[str, ...]


class Reply(msgspec.Struct, frozen=True):
    """What the child writes: a result, or a fault with its message."""

    result: ShownView | str = ""
    fault: Fault | None = None
    message: str = ""


def show(settings: Tmux, environ: Mapping[str, str], request: ShowView, *, deadline_s: float) -> ShownView:
    """Carry it out. Raises TmuxError."""
    shown = _ask(settings, environ, request, deadline_s)
    assert isinstance(shown, ShownView)
    return shown


def output(settings: Tmux, environ: Mapping[str, str], words: Sequence[str], *, deadline_s: float = DEADLINE_S) -> str:
    """What a tmux command prints; several have ``;`` between them, and run in one turn. Raises TmuxError."""
    return str(_ask(settings, environ, tuple(words), deadline_s))


def _ask(
    settings: Tmux, environ: Mapping[str, str], request: ShowView | tuple[str, ...], deadline_s: float
) -> ShownView | str:
    if shutil.which("tmux", path=environ.get("PATH")) is None:
        raise TmuxError("missing", "tmux is not installed (apt install tmux)")
    output, errors, status = _run_child(Call(settings.socket, deadline_s, request), environ)
    try:
        reply = msgspec.json.decode(output, type=Reply)
    except msgspec.DecodeError as fault:
        last = errors.decode("utf-8", "replace").strip().splitlines()[-1:]
        reason = last[0] if last else f"exit status {status}"
        raise TmuxError("failed", f"libtmux ended without a reply ({reason})") from fault
    if reply.fault is not None:
        raise TmuxError(reply.fault, reply.message)
    return reply.result


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
