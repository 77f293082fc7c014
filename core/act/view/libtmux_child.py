"""Program that carries out one request of ``tmux_calls`` with libtmux: the only module that imports libtmux.

``python -P -m trainwatch.core.act.view.libtmux_child``: reads a Call from stdin and writes a Reply to stdout. It leads
a process group of its own. When the deadline has passed, or its parent is gone (SIGALRM in both cases), it writes the
fault "deadline" and ends the group, and with it the ``tmux`` client that it waits for.

``… libtmux_child SESSION``: shows SESSION in a popup over this terminal. It has no deadline: it lasts as long as the
popup is open.
"""

import contextlib
import os
import shlex
import signal
import sys
from types import FrameType

import libtmux
import msgspec
from libtmux.common import has_minimum_version
from libtmux.exc import LibTmuxException, TmuxCommandNotFound, TmuxSessionExists

from .tmux_calls import MARK, Call, Reply, ShownView, ShowView, no_answer

HISTORY_LINES = 50000
"""A window takes the length of its history from its session's option when it is made. tmux's default of 2000 lines is
an hour of a progress bar."""
VIEW = "@trainwatch_view"
"""Window option: id of the pane that holds our view."""


def main(arguments: list[str]) -> int:
    """Read the request from standard input, carry it out, write the result."""
    if arguments:
        return popup(arguments[0])
    call = msgspec.json.decode(sys.stdin.buffer.read(), type=Call)

    def on_deadline(_signal: int, _frame: FrameType | None) -> None:
        with contextlib.suppress(OSError):  # the pipe is closed if the parent has been killed
            _write(Reply(fault="deadline", message=no_answer(call.deadline_s)))
        os.killpg(0, signal.SIGKILL)

    signal.signal(signal.SIGALRM, on_deadline)
    signal.setitimer(signal.ITIMER_REAL, call.deadline_s)
    reply = _answer(call)
    signal.setitimer(signal.ITIMER_REAL, 0)
    _write(reply)
    return 0


def _write(reply: Reply) -> None:
    os.write(sys.stdout.fileno(), msgspec.json.encode(reply))


def _answer(call: Call) -> Reply:
    server = _server(call.socket)
    try:
        if not has_minimum_version(raises=False):
            return Reply(fault="missing", message=f"libtmux needs tmux {libtmux.common.TMUX_MIN_VERSION} or newer")
        request = call.request
        return Reply(result=_show(server, request) if isinstance(request, ShowView) else _output(server, *request))
    except TmuxCommandNotFound:
        return Reply(fault="missing", message="tmux is not installed (apt install tmux)")
    except Exception as fault:  # whatever libtmux cannot parse costs a window, not the request's caller
        lines = str(fault).strip().splitlines() or [type(fault).__name__]
        return Reply(fault="failed", message=lines[-1])


def _server(socket_name: str | None) -> libtmux.Server:
    """The server of ``tmux -L``, else the one of ``$TMUX``, else the default one.

    Its socket is given with every command: ``Server.new_session`` ignores ``$TMUX`` and the other commands follow it,
    so in a tmux with a socket of its own the window of a session of the user was taken for ours and ended.
    """
    own = os.environ.get("TMUX", "").partition(",")[0]
    return libtmux.Server(socket_path=own) if socket_name is None and own else libtmux.Server(socket_name=socket_name)


def _show(server: libtmux.Server, request: ShowView) -> ShownView:
    session = next(iter(server.search_sessions(filter=f"#{{==:#{{{MARK}}},{request.mark}}}")), None)
    again = session is not None
    if session is None:
        session = _new_session(server, request)
        _new_view(session, request)
        session.kill_window(session.window_id)  # the first window's history has the default length
    else:
        _renew_view(session, request)
    return ShownView(session=session.session_name or "", again=again)


def _new_session(server: libtmux.Server, request: ShowView) -> libtmux.Session:
    for name in request.names:
        try:
            session = server.new_session(name, attach=False, x=200, y=50, window_command="exec tail -f /dev/null")
        except TmuxSessionExists:
            continue
        session.set_option(MARK, request.mark)
        session.set_option("history-limit", str(HISTORY_LINES))
        return session
    raise LibTmuxException(f"all names {request.names[0]}, {request.names[1]} … are taken (tmux.session)")


def _new_view(session: libtmux.Session, request: ShowView) -> None:
    window = session.new_window("trainer", window_shell=_shell(request), environment=request.environment)
    _show_how_to_leave(session, request)
    window.set_option(VIEW, window.pane_id or "")
    for option, value in (("remain-on-exit", "on"), ("automatic-rename", "off"), ("allow-rename", "off")):
        window.set_option(option, value)


def _renew_view(session: libtmux.Session, request: ShowView) -> None:
    views = session.search_panes(filter=f"#{{==:#{{pane_id}},#{{{VIEW}}}}}")
    if not views:  # someone closed it
        _new_view(session, request)
        return
    views[0].respawn(kill=True, shell=_shell(request), environment=request.environment)
    _show_how_to_leave(session, request)


def _shell(request: ShowView) -> str:
    return f"exec {shlex.join(request.command)}"


def _show_how_to_leave(session: libtmux.Session, request: ShowView) -> None:
    """In the status line, which stays while the view scrolls. The view works without it."""
    with contextlib.suppress(LibTmuxException):
        for option, value in (("status", "on"), ("status-left-length", "80"), ("status-left", request.status_left)):
            session.set_option(option, value)


def _output(server: libtmux.Server, *words: str) -> str:
    """stdout of one tmux command, or of several with ``;`` between them. Server.cmd itself never raises."""
    done = server.cmd(*words)
    if done.returncode != 0:
        raise LibTmuxException(done.stderr[-1] if done.stderr else f"tmux {words[0]} returned {done.returncode}")
    return "\n".join(done.stdout)


def popup(session: str) -> int:
    """Show a session of this server until the popup is closed; switch the client if there can be no popup."""
    server = libtmux.Server.from_env()
    nested = ["env", "-u", "TMUX", "tmux", "-S", str(server.socket_path), "attach-session", "-t", f"={session}"]
    pane = libtmux.Pane(server=server, pane_id=os.environ.get("TMUX_PANE"))
    try:
        pane.display_popup(shlex.join(nested), close_on_exit=True, width="100%", height="100%")
    except LibTmuxException:
        try:
            server.switch_client(f"={session}")
        except LibTmuxException as fault:
            sys.stderr.write(f"trainwatch: tmux could not show session {session}: {fault}\n")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
