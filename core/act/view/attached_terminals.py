"""Whether a terminal is attached to the tmux server of this pane, told without asking the server.

tmux makes its socket executable while a terminal is attached to any of its sessions, and takes that back afterwards
(``server_update_socket`` in its server.c; screen does the same). A look at the mode costs one ``stat``, a question to
the server starts two processes.
"""

import os
import stat
from collections.abc import Mapping


def is_terminal_attached(environ: Mapping[str, str]) -> bool:
    """``environ``: of a program in a pane. Unknown (no tmux, a socket that was removed) counts as yes."""
    socket = environ.get("TMUX", "").partition(",")[0]
    try:
        return not socket or bool(os.stat(socket).st_mode & stat.S_IXUSR)  # noqa: PTH116  once a second, in a small program
    except OSError:
        return True
