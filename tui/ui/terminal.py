"""The terminal: whether there is one, its size, and exit when it is closed."""

import contextlib
import os
import select
import signal
import sys
import threading
from collections.abc import Mapping

LOOK_S = 1.0
GONE = 129
"""Exit code of a process ended by a hang-up (128 + SIGHUP)."""


def in_browser(env: Mapping[str, str]) -> bool:
    """True if `trainwatch serve` runs this screen: it is drawn into pipes, for a page."""
    return env.get("TEXTUAL_DRIVER", "").endswith(":WebDriver")


def mouse_supported(env: Mapping[str, str]) -> bool:
    """False inside GNU screen: with mouse reporting on, it holds back a lone Escape until the next key."""
    return not env.get("STY")


def can_show_screen() -> bool:
    """True in a browser, and on a terminal that can address its cells. It is drawn on stderr.

    Also stdout must be a terminal: who pipes it (``trainwatch | cat``) wants text; so does who puts it in the
    background (``trainwatch run … &``), where reading keys would stop it.
    """
    if in_browser(os.environ):
        return True
    if os.environ.get("TERM", "") in {"", "dumb"} or in_background():
        return False
    with contextlib.suppress(ValueError, AttributeError):  # closed or absent streams
        return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.__stdout__, sys.__stderr__))
    return False


def use_terminal_size() -> None:
    """Ignore COLUMNS and LINES: a shell may have exported them long ago, and they would override the real size."""
    for name in ("COLUMNS", "LINES"):
        os.environ.pop(name, None)


def exit_with_terminal() -> None:
    """Exit as soon as the terminal is closed.

    SIGHUP gets its default action again, which a parent may have set to ignore, and a thread waits for the hang-up of
    stdin: Textual's reader does not notice it and would use 100 % CPU.
    """
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    threading.Thread(target=_wait_for_hangup, args=(os.getppid(),), name="terminal-watch", daemon=True).start()


def _wait_for_hangup(parent: int) -> None:
    poll = select.poll()
    poll.register(0, 0)
    while True:
        if any(event & (select.POLLHUP | select.POLLERR | select.POLLNVAL) for _, event in poll.poll(LOOK_S * 1000)):
            os._exit(GONE)
        if os.getppid() != parent and not _in_foreground():
            os._exit(GONE)


def in_background() -> bool:
    """True if another process group has the terminal of stdin."""
    try:
        return os.tcgetpgrp(0) not in {0, os.getpgrp()}  # 0: that group is outside of this container
    except OSError:
        return False


def _in_foreground() -> bool:
    try:
        return os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return False
