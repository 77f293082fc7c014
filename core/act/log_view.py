"""A window on a trainer's log (file mode): says what it is, then becomes ``tail -F``.

Program: ``python -P -m trainwatch.core.act.log_view LOG TITLE [--pane]``. The trainer is not in this terminal, so no
key can reach it. With ``--pane`` (inside a tmux window of ours) Ctrl-C does nothing at all; else it ends the view.
"""

import os
import signal
import sys
from pathlib import Path

TAIL_BYTES = 4 << 20
"""Of a longer log only the end is shown: a window is no archive, and the file holds everything."""
KEYS = (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP)


def tail_command(log: str) -> list[str]:
    """``tail`` that follows the name through rotation, from the beginning unless the log is long."""
    try:
        size = Path(log).stat().st_size
    except OSError:
        size = 0
    begin = ["-n", "+1"] if size <= TAIL_BYTES else ["-c", str(TAIL_BYTES)]
    return ["tail", *begin, "-F", "--", log]


def main(arguments: list[str]) -> int:
    """Show ``arguments[0]``; does not return."""
    log, title = arguments[0], arguments[1]
    if "--pane" in arguments[2:]:
        for number in KEYS:
            signal.signal(number, signal.SIG_IGN)  # stays ignored through exec
        leave = "Ctrl-C here cannot reach the trainer; tmux prefix, then d: leave"
    else:
        leave = "Ctrl-C ends this view and cannot reach the trainer"
    sys.stderr.write(f"[this is the log of {title} (file mode): {leave}]\n[{log}]\n")
    sys.stderr.flush()
    command = tail_command(log)
    try:
        os.execvp(command[0], command)
    except FileNotFoundError:
        sys.stderr.write(f"tail is not installed; the log is {log}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
