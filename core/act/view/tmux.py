"""The tmux window that shows a trainer to people. It does not keep the trainer alive: the runner does.

Options are only set on the session and the window that we made, never globally. The session carries the id of its run
(``tmux_calls.MARK``), so that a user's session with the same name is not used. Errors become sentences.
"""

import os
from collections.abc import Mapping

import msgspec

from ...model.ports.supervision import AttemptTarget
from ...model.run import RunSpec
from ...model.text.printable import printable
from . import tmux_calls
from .tmux_calls import CloseSession, FindSessions, FoundSessions, ShownView, ShowView, TmuxError
from .view_command import is_log_view, view_command

SHOW_DEADLINE_S = 3.0
"""The supervisor waits for it after each launch, and `run` has already waited for FIND_DEADLINE_S: 5 s together."""
FIND_DEADLINE_S = 2.0
PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "PYTHONPATH", "VIRTUAL_ENV")
"""Variables that the view needs. A running tmux server does not pass a client's environment to a new window."""


class TmuxReport(msgspec.Struct, frozen=True, kw_only=True):
    """``session``: the session that shows the run, None if there is none; ``detail``: a sentence in both cases."""

    ok: bool
    session: str | None
    detail: str


def show(run: RunSpec, target: AttemptTarget, environ: Mapping[str, str] | None = None) -> TmuxReport:
    """Show this attempt in the run's tmux session, which is made if there is none.

    Blocks for about 0.3 s, at most SHOW_DEADLINE_S if the tmux server hangs.
    """
    environ = os.environ if environ is None else environ
    if not run.settings.tmux.enabled:
        return TmuxReport(ok=False, session=None, detail="no tmux window: switched off (tmux.enabled)")
    command = view_command(run, target, in_pane=True)
    request = ShowView(
        mark=run.id,
        names=_session_names(run),
        command=tuple(command),
        environment={name: environ[name] for name in PASSED_ON if name in environ},
        status_left=_status_left(run, command),
    )
    try:
        shown = tmux_calls.ask(run.settings.tmux, environ, request, ShownView, deadline_s=SHOW_DEADLINE_S)
    except TmuxError as error:
        return TmuxReport(ok=False, session=None, detail=f"no tmux window: {error}; the training continues without one")
    verb = "shown again in" if shown.again else "shown in"
    return TmuxReport(ok=True, session=shown.session, detail=f"{verb} tmux session {shown.session}")


def find_sessions(run: RunSpec, names: tuple[str, ...] = (), environ: Mapping[str, str] | None = None) -> FoundSessions:
    """Find the session that shows the run, and which of ``names`` are names of sessions. Raises TmuxError."""
    environ = os.environ if environ is None else environ
    request = FindSessions(mark=run.id, names=names)
    return tmux_calls.ask(run.settings.tmux, environ, request, FoundSessions, deadline_s=FIND_DEADLINE_S)


def close(run: RunSpec, environ: Mapping[str, str] | None = None, *, unless_attached: bool = False) -> bool:
    """End the run's session and all its windows; the trainer does not run in it. False: nothing was ended.

    ``unless_attached``: keep the session while a terminal shows it.
    """
    environ = os.environ if environ is None else environ
    request = CloseSession(mark=run.id, unless_attached=unless_attached)
    try:
        return tmux_calls.ask(run.settings.tmux, environ, request, bool, deadline_s=SHOW_DEADLINE_S)
    except TmuxError:
        return False


def session_name(run: RunSpec) -> str:
    """The preferred name. tmux forbids ``.`` and ``:`` in names; other special characters would be read as targets."""
    wanted = run.settings.tmux.session or f"trainwatch-{run.name}"
    return "".join(character if character.isalnum() or character in "-_" else "-" for character in wanted)


def _session_names(run: RunSpec) -> tuple[str, ...]:
    wanted = session_name(run)
    return (wanted, *(f"{wanted}-{number}" for number in range(2, 100)))


def _status_left(run: RunSpec, command: list[str]) -> str:
    name = printable(run.name).replace("#", "##")
    leave = f"log of {name} · q or Ctrl-C: leave" if is_log_view(command) else "#{prefix} d: leave"
    return f" {leave} · "
