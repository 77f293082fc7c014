"""Program that gives one command line to a tmux server through libtmux: the only module that imports libtmux.

``… libtmux_child PARENT_PID SOCKET DEADLINE_S WORD …`` prints what tmux prints. ``SOCKET``: of ``tmux -L``; empty: the
server of ``$TMUX``, else the default one. Exit status 1, and a line on standard error: tmux or libtmux failed; MISSING:
there is no usable tmux. It leads a process group of its own. When the deadline has passed, or its parent is gone
(SIGALRM in both cases), it ends the group, and with it the ``tmux`` that it waits for.
"""

import os
import signal
import sys

import libtmux
from libtmux.common import has_minimum_version
from libtmux.exc import TmuxCommandNotFound

from ...bound_process import end_with

MISSING = 127


def main(arguments: list[str]) -> int:
    """Carry out the command line in ``arguments``."""
    parent, socket, deadline_s, *words = arguments
    signal.signal(signal.SIGALRM, lambda _number, _frame: os.killpg(0, signal.SIGKILL))
    end_with(int(parent), signal.SIGALRM)
    signal.setitimer(signal.ITIMER_REAL, float(deadline_s))
    own = os.environ.get("TMUX", "").partition(",")[0]
    server = libtmux.Server(socket_path=own) if own and not socket else libtmux.Server(socket_name=socket or None)
    try:
        if not has_minimum_version(raises=False):
            return _failed(MISSING, f"libtmux needs tmux {libtmux.common.TMUX_MIN_VERSION} or newer")
        done = server.cmd(*words)
    except TmuxCommandNotFound:
        return _failed(MISSING, "tmux is not installed (apt install tmux)")
    except Exception as fault:  # whatever libtmux cannot parse costs a window, not the request's caller
        return _failed(1, str(fault).strip() or type(fault).__name__)
    if done.returncode != 0:
        return _failed(1, done.stderr[-1] if done.stderr else f"tmux {words[0]} returned {done.returncode}")
    sys.stdout.buffer.write("\n".join(done.stdout).encode("utf-8", "surrogateescape"))
    return 0


def _failed(status: int, why: str) -> int:
    sys.stderr.write(f"{why}\n")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
