"""A tmux window that shows the trainer to people. It keeps nothing alive: the runner does.

Through the ``tmux`` program itself, each call with a time limit: a stopped server would hold a caller without one for
ever. Never ``set -g``; options only on the session and window that we made, which carry a mark (``@trainwatch`` = run
id), so that nobody's session is taken for ours because of its name. Every fault is a sentence, never an exception.
"""

import contextlib
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from ...model.ports import AttemptTarget
from ...model.run import RunSpec
from ...model.settings import Tmux
from .view_command import is_log_view, view_command

TIMEOUT_S = 5.0
HISTORY_LINES = 50000
"""A window's history is fixed when it is made, from its session's option; the default of 2000 is an hour of a bar."""
MARK = "@trainwatch"
VIEW = "@trainwatch_view"
"""Window option: id of the pane that holds our view."""
PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "PYTHONPATH", "VIRTUAL_ENV")
"""A running server does not pass a client's environment on, so the view gets what it needs by name."""


class TmuxReport(msgspec.Struct, frozen=True, kw_only=True):
    """``session``: where the run can be seen, None when nowhere; ``detail``: a sentence either way."""

    ok: bool
    session: str | None
    detail: str


class TmuxTrouble(Exception):  # noqa: N818 - caught here, becomes a sentence
    """tmux could not do it; the message says why."""


def show(run: RunSpec, target: AttemptTarget, environ: Mapping[str, str] | None = None) -> TmuxReport:
    """Let a tmux window show this attempt: the run's own session if it has one, else a new one.

    Blocks for some 10 ms, at most a few times 5 s when the server hangs.
    """
    environ = os.environ if environ is None else environ
    settings = run.settings.tmux
    if not settings.enabled:
        return TmuxReport(ok=False, session=None, detail="no tmux window: switched off (tmux.enabled)")
    try:
        session = _own_session(run, environ)
        verb = "shown in" if session is None else "shown again in"
        if session is None:
            session = _new_session(run, target, environ)
        else:
            _renew_view(run, target, session, environ)
    except TmuxTrouble as trouble:
        return TmuxReport(ok=False, session=None, detail=f"no tmux window: {trouble}; the training goes on without one")
    return TmuxReport(ok=True, session=session, detail=f"{verb} tmux session {session}")


def find_session(run: RunSpec, environ: Mapping[str, str] | None = None) -> str | None:
    """Name of the live session that shows the run; None when there is none, or no tmux."""
    try:
        return _own_session(run, os.environ if environ is None else environ)
    except TmuxTrouble:
        return None


def close(run: RunSpec, environ: Mapping[str, str] | None = None, *, unless_attached: bool = False) -> bool:
    """End the run's session and all its windows; the trainer is not in there. False: there was none, or it stays.

    ``unless_attached``: leave it where somebody is looking at it.
    """
    environ = os.environ if environ is None else environ
    session = find_session(run, environ)
    if session is None:
        return False
    try:
        if unless_attached and _call(run.settings.tmux, environ, "list-clients", "-t", f"={session}").strip():
            return False
        _call(run.settings.tmux, environ, "kill-session", "-t", f"={session}")
    except TmuxTrouble:
        return False
    return True


def socket_path(settings: Tmux, environ: Mapping[str, str]) -> str | None:
    """Where the server of these settings listens; None when it does not run."""
    try:
        return _call(settings, environ, "display-message", "-p", "#{socket_path}").strip() or None
    except TmuxTrouble:
        return None


def command(settings: Tmux) -> list[str]:
    """``tmux`` with the socket of the settings."""
    return ["tmux"] if settings.socket is None else ["tmux", "-L", settings.socket]


def session_name(run: RunSpec) -> str:
    """The name that is tried first. tmux itself forbids ``.`` and ``:``; other signs would be read as targets."""
    wanted = run.settings.tmux.session or f"trainwatch-{run.name}"
    return "".join(sign if sign.isalnum() or sign in "-_" else "-" for sign in wanted)


def _own_session(run: RunSpec, environ: Mapping[str, str]) -> str | None:
    return next((name for mark, name in _sessions(run.settings.tmux, environ) if mark == run.id), None)


def _sessions(settings: Tmux, environ: Mapping[str, str]) -> list[tuple[str, str]]:
    try:
        text = _call(settings, environ, "list-sessions", "-F", f"#{{{MARK}}}|#{{session_name}}")
    except TmuxTrouble as trouble:
        # No server is no trouble: the first session starts one.
        if "no server running" in str(trouble) or "error connecting" in str(trouble):
            return []
        raise
    return [(mark, name) for mark, _, name in (line.partition("|") for line in text.splitlines())]


def _free_names(run: RunSpec, environ: Mapping[str, str]) -> Iterator[str]:
    taken = {name for _, name in _sessions(run.settings.tmux, environ)}
    wanted = session_name(run)
    for name in (wanted, *(f"{wanted}-{number}" for number in range(2, 100))):
        if name not in taken:
            yield name


def _new_session(run: RunSpec, target: AttemptTarget, environ: Mapping[str, str]) -> str:
    settings = run.settings.tmux
    for name in _free_names(run, environ):
        # The first window only holds the place: its history would have the server's default length.
        text = _call(
            settings, environ, "new-session", "-d", "-s", name, "-x", "200", "-y", "50", "-P", "-F", "#{window_id}",
            "--", "tail", "-f", "/dev/null",
        )  # fmt: skip
        _call(settings, environ, "set-option", "-t", f"={name}:", MARK, run.id)
        _call(settings, environ, "set-option", "-t", f"={name}:", "history-limit", str(HISTORY_LINES))
        _new_view(run, target, name, environ)
        _call(settings, environ, "kill-window", "-t", text.strip())
        return name
    raise TmuxTrouble(f"all names {session_name(run)}, {session_name(run)}-2 … are taken (tmux.session)")


def _new_view(run: RunSpec, target: AttemptTarget, session: str, environ: Mapping[str, str]) -> None:
    settings = run.settings.tmux
    text = _call(
        settings, environ, "new-window", "-P", "-F", "#{window_id} #{pane_id}", "-t", f"={session}:", "-n", "trainer",
        "--", *_view_words(run, target, environ),
    )  # fmt: skip
    window, _, pane = text.strip().partition(" ")
    _say_how_to_leave(run, target, session, environ)
    for option, value in ((VIEW, pane), ("remain-on-exit", "on"), ("automatic-rename", "off"), ("allow-rename", "off")):
        _call(settings, environ, "set-option", "-w", "-t", window, option, value)


def _renew_view(run: RunSpec, target: AttemptTarget, session: str, environ: Mapping[str, str]) -> None:
    settings = run.settings.tmux
    panes = _call(settings, environ, "list-panes", "-s", "-t", f"={session}:", "-F", f"#{{pane_id}} #{{{VIEW}}}")
    for line in panes.splitlines():
        pane, _, view = line.partition(" ")
        if pane == view:
            _call(settings, environ, "respawn-pane", "-k", "-t", pane, "--", *_view_words(run, target, environ))
            _say_how_to_leave(run, target, session, environ)
            return
    _new_view(run, target, session, environ)  # someone closed it


def _say_how_to_leave(run: RunSpec, target: AttemptTarget, session: str, environ: Mapping[str, str]) -> None:
    """In the status line, which stays while the view scrolls. Decoration: without it the view is as good."""
    name = "".join(sign for sign in run.name if sign.isprintable()).replace("#", "##")
    prefix = "#{prefix} d: leave"
    said = f"log of {name} · q or Ctrl-C: leave" if is_log_view(view_command(run, target, in_pane=True)) else prefix
    with contextlib.suppress(TmuxTrouble):
        for option, value in (("status", "on"), ("status-left-length", "80"), ("status-left", f" {said} · ")):
            _call(run.settings.tmux, environ, "set-option", "-t", f"={session}:", option, value)


def _view_words(run: RunSpec, target: AttemptTarget, environ: Mapping[str, str]) -> list[str]:
    named = [f"{key}={environ[key]}" for key in PASSED_ON if key in environ]
    return ["env", *named, *view_command(run, target, in_pane=True)]


def _call(settings: Tmux, environ: Mapping[str, str], *words: str) -> str:
    """stdout of one tmux command. Raises TmuxTrouble with what tmux said."""
    try:
        done = subprocess.run(
            [*command(settings), *_escape(words)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TIMEOUT_S,
            check=False,
            env=dict(environ),
            cwd="/",
        )
    except FileNotFoundError as fault:
        raise TmuxTrouble("tmux is not installed (apt install tmux)") from fault
    except subprocess.TimeoutExpired as fault:
        raise TmuxTrouble(f"the tmux server did not answer within {TIMEOUT_S:g} s") from fault
    except (OSError, ValueError) as fault:
        raise TmuxTrouble(f"tmux could not be started: {fault}") from fault
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise TmuxTrouble(said[-1] if said else f"tmux {words[0]} returned {done.returncode}")
    return done.stdout.decode("utf-8", "replace")


def _escape(words: Sequence[str]) -> Iterator[str]:
    """tmux takes an argument that ends in ``;`` for the end of a command, even in argv form."""
    for word in words:
        yield f"{word[:-1]}\\;" if word.endswith(";") else word
