"""Processes of another user that ``sudo`` started: they are signalled by ``sudo`` itself, if it asks for no password.

sudo(8) runs as root, so that its own user may not signal it, and it ignores what its command sends; kill(2).
"""

import os
import signal
from collections.abc import Callable, Mapping
from pathlib import Path

from ...model.launch.elsewhere.wrappers import layers
from ...model.ports.supervision import AttemptTarget
from ..launch.attempt_records import read_order
from ..processes import Process, read_process
from ..stop.stopping import members
from .called import called

KILL = "/bin/kill"


class OtherUser:
    """Implements ``Place`` for the processes of an attempt that belong to another user."""

    def __init__(self, tool: str, foreign: Callable[[], list[Process]], *, cwd: str, env: Mapping[str, str]) -> None:
        self._tool = tool
        self._foreign = foreign
        self._cwd, self._env = cwd, env
        self.name = "the processes of another user"

    def running(self) -> bool:
        return bool(self._foreign())

    def signal(self, number: int) -> None:
        name = signal.Signals(number).name.removeprefix("SIG")
        pids = [str(each.pid) for each in self._foreign() if each.name != self._tool]  # sudo passes the status on
        if not pids:
            pids = [str(each.pid) for each in self._foreign()] if number == signal.SIGKILL else []
        if pids:
            called((self._tool, "-n", KILL, "-s", name, *pids), cwd=self._cwd, env=self._env)

    def pause(self) -> None:
        self.signal(signal.SIGSTOP)

    def unpause(self) -> None:
        self.signal(signal.SIGCONT)


def other_user_of(target: AttemptTarget) -> OtherUser | None:
    """The processes that this user may not signal; None if the command starts none as another user, or we are root."""
    order = read_order(Path(target.directory))
    if order is None or os.geteuid() == 0:
        return None
    user = next((each for each in layers(order.argv) if each.kind == "user"), None)
    if user is None:
        return None
    return OtherUser(user.program, lambda: _foreign(target), cwd=order.cwd, env=order.env)


def _foreign(target: AttemptTarget) -> list[Process]:
    return [process for process in members(target) if _owner(process) not in {None, os.geteuid()}]


def _owner(process: Process) -> int | None:
    try:
        owner = Path(f"/proc/{process.pid}").stat().st_uid
    except OSError:
        return None
    same = read_process(process.pid)
    return owner if same is not None and same.key == process.key else None
