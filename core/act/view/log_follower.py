"""A window on a trainer's log (file mode): says what it is, and follows the log until it is left with q or Ctrl-C.

Program: ``python -P -m trainwatch.core.act.view.log_follower LOG TITLE [--pane]``. The trainer is not in this
terminal, so no key can reach it. With ``--pane`` (inside a tmux window of ours) leaving detaches the terminal that
the key came from, and the view goes on for the next one.
"""

import contextlib
import os
import select
import signal
import subprocess
import sys
import termios
from pathlib import Path
from types import FrameType

TAIL_BYTES = 4 << 20
"""Of a longer log only the end is shown: a window is no archive, and the file holds everything."""
KEYS = (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP)
LEAVE = frozenset(b"qQ\x03")
"""q and Ctrl-C, as the terminal hands them over."""
LOOK_S = 1.0
"""How often it is looked whether ``tail`` is still there."""


def tail_command(log: str) -> list[str]:
    """``tail`` that follows the name through rotation, from the beginning unless the log is long."""
    try:
        size = Path(log).stat().st_size
    except OSError:
        size = 0
    begin = ["-n", "+1"] if size <= TAIL_BYTES else ["-c", str(TAIL_BYTES)]
    return ["tail", *begin, "-F", "--", log]


def main(arguments: list[str]) -> int:
    """Show ``arguments[0]`` until it is left; without a terminal to read keys from it becomes ``tail`` itself."""
    log, title = arguments[0], arguments[1]
    in_pane = "--pane" in arguments[2:]
    if in_pane:
        for number in KEYS:
            signal.signal(number, signal.SIG_IGN)  # stays ignored through exec
    command = tail_command(log)
    keys = sys.stdin.isatty()
    leave = "q or Ctrl-C: leave" if keys else "Ctrl-C: leave"
    told = f"log of {title} (file mode): no key here reaches the trainer; {leave}"
    sys.stderr.write(f"[this is the {told}]\n[{log}]\n")
    if keys and not in_pane:  # the line above scrolls away; in tmux the status line says it
        sys.stderr.write(f"\x1b]2;{''.join(sign for sign in told if sign.isprintable())}\x07")
    sys.stderr.flush()
    try:
        if keys:
            return follow(command, in_pane=in_pane)
        os.execvp(command[0], command)
    except FileNotFoundError:
        sys.stderr.write(f"tail is not installed; the log is {log}\n")
        return 1


def follow(command: list[str], *, in_pane: bool) -> int:
    """Run ``command`` until it ends or a key leaves; the terminal is as before afterwards."""
    before = termios.tcgetattr(0)
    quiet = [*before]
    quiet[3] &= ~(termios.ICANON | termios.ECHO | termios.ISIG)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _end)
    child: subprocess.Popen[bytes] | None = None
    try:
        termios.tcsetattr(0, termios.TCSANOW, quiet)
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        while child.poll() is None:
            if not select.select([0], [], [], LOOK_S)[0]:
                continue
            typed = os.read(0, 1024)
            if not typed or (LEAVE.intersection(typed) and not in_pane):
                return 0
            if LEAVE.intersection(typed):
                detach()
        return child.returncode
    except OSError as error:  # the terminal is gone
        if isinstance(error, FileNotFoundError):
            raise
        return 0
    finally:
        if child is not None and child.poll() is None:
            child.terminate()
            child.wait()
        with contextlib.suppress(termios.error):
            termios.tcsetattr(0, termios.TCSANOW, before)


def detach() -> None:
    """Let the terminal go that shows this window; tmux takes the one where a key was pressed last."""
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        subprocess.run(
            ["tmux", "detach-client"],  # noqa: S607 - the one on the PATH that the view was given
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=5.0, check=False,
        )  # fmt: skip


def _end(number: int, _: FrameType | None) -> None:
    sys.exit(128 + number)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
