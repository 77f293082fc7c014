"""Shows a trainer's log in file mode and follows it until q or Ctrl-C.

Program: ``python -P -m trainwatch.core.act.view.log_follower LOG TITLE [--pane]``. The trainer does not run in this
terminal, so no key reaches it. With ``--pane`` (inside the run's tmux window) q and Ctrl-C detach the terminal on which
they were pressed, and the view stays for the next one.
"""

import contextlib
import os
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path

from ...bound_process import NoAnswerError, answer, bound
from ...model.text import printable
from ...spool import EXIT
from ..launch.keep_alive import lock_holder

TAIL_BYTES = 4 << 20
"""Of a longer log only the end is shown."""
KEYS = (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP)
LEAVE = frozenset(b"qQ\x03")
"""q and Ctrl-C as the terminal sends them."""
TMUX_S = 5.0
POLL_S = 1.0
"""Period of checking whether ``tail`` still runs."""
OVER_S = 60.0
"""A view in the run's tmux window ends so long after the attempt, if no supervisor is there that shows the next one."""


def tail_command(log: str) -> list[str]:
    """``tail`` that follows the file's name through rotation, from the beginning or the last TAIL_BYTES."""
    try:
        size = Path(log).stat().st_size
    except OSError:
        size = 0
    begin = ["-n", "+1"] if size <= TAIL_BYTES else ["-c", str(TAIL_BYTES)]
    return ["tail", *begin, "-F", "--", log]


def main(arguments: list[str]) -> int:
    """Show ``arguments[0]`` until a key ends it. Without a terminal to read keys from, execute ``tail`` itself."""
    log, title = arguments[0], arguments[1]
    in_pane = "--pane" in arguments[2:]
    if in_pane:
        for number in KEYS:
            signal.signal(number, signal.SIG_IGN)  # stays ignored through exec
    keys = sys.stdin.isatty()
    leave = "q or Ctrl-C: leave" if keys else "Ctrl-C: leave"
    hint = f"log of {printable(title)} (file mode): no key here reaches the trainer; {leave}"
    sys.stderr.write(f"[this is the {hint}]\n[{log}]\n")
    if keys and not in_pane:  # the line above scrolls away; in tmux the status line has it
        sys.stderr.write(f"\x1b]2;{hint}\x07")
    sys.stderr.flush()
    try:
        command = tail_command(log)
        if keys:
            return follow(command, in_pane=in_pane, over=Over(log).is_over if in_pane else lambda: False)
        os.execvp(command[0], command)
    except FileNotFoundError:
        sys.stderr.write(f"tail is not installed; the log is {log}\n")
        return 1


def follow(command: list[str], *, in_pane: bool, over: Callable[[], bool]) -> int:
    """Run the command until it ends, q or Ctrl-C is pressed, or ``over``, then restore the terminal."""
    before = termios.tcgetattr(0)
    quiet = [*before]
    quiet[3] &= ~(termios.ICANON | termios.ECHO | termios.ISIG)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda received, _: sys.exit(128 + received))
    child = subprocess.Popen(bound(command), stdin=subprocess.DEVNULL)
    try:
        termios.tcsetattr(0, termios.TCSANOW, quiet)
        while child.poll() is None:
            if not select.select([0], [], [], POLL_S)[0]:
                if over():
                    return 0
                continue
            typed = os.read(0, 1024)
            if not typed or (LEAVE.intersection(typed) and not in_pane):
                return 0
            if LEAVE.intersection(typed):  # tmux chooses the terminal on which a key was pressed last
                _tmux("detach-client")
        return child.returncode
    except OSError:  # the terminal was closed
        return 0
    finally:
        child.terminate()
        child.wait()
        with contextlib.suppress(termios.error):
            termios.tcsetattr(0, termios.TCSANOW, before)


class Over:
    """Whether nobody needs the view any more: attempt and supervisor have ended, and no terminal shows the window."""

    def __init__(self, log: str) -> None:
        self._attempt = Path(log).parent
        self._lock = str(self._attempt.parent.parent / "supervisor.lock")
        self._since: float | None = None

    def is_over(self) -> bool:
        if not (self._attempt / EXIT).exists() and self._attempt.is_dir():
            return False
        if lock_holder(self._lock)[0]:
            self._since = None
            return False
        now = time.monotonic()
        self._since = self._since if self._since is not None else now
        if now - self._since < OVER_S:
            return False
        self._since = now  # asked again after OVER_S
        attached = _tmux("display-message", "-p", "-t", os.environ.get("TMUX_PANE", ""), "#{session_attached}")
        return attached is not None and attached.strip() == "0"  # unknown: somebody may look


def _tmux(*words: str) -> str | None:
    """What tmux prints; None if it fails."""
    try:
        return answer(["tmux", *words], TMUX_S)
    except NoAnswerError:
        return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
