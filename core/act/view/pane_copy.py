"""Copies the output of a tmux pane into a log while the adopted trainer in it is alive.

Program: ``python -P -m trainwatch.core.act.view.pane_copy LOG PID START_TICKS``, started by ``tmux pipe-pane``.
Standard library only. It ends with the trainer, so that later input in the pane is not recorded.
"""

import os
import select
import sys
import time

from .. import processes
from ..launch.trainer_pty import LogFile

# No pathlib here: it keeps this process small.
# ruff: noqa: PTH110


LOG_WAIT_S = 10.0
"""The log begins with the pane's history, which is written while this program starts."""
POLL_S = 0.5
LAST_OUTPUT_S = 1.0
"""tmux passes the last output of a dead trainer on within milliseconds."""


def main(arguments: list[str]) -> int:
    """Copy standard input until the pane is closed or the trainer has ended."""
    path, trainer = arguments[0], (int(arguments[1]), int(arguments[2]))
    deadline = time.monotonic() + LOG_WAIT_S
    while not os.path.exists(path) and time.monotonic() < deadline:
        time.sleep(0.02)
    log = LogFile(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600))
    until: float | None = None
    while until is None or time.monotonic() < until:
        if until is None and not processes.is_alive(trainer):
            until = time.monotonic() + LAST_OUTPUT_S
        if select.select([0], [], [], POLL_S if until is None else 0.1)[0]:
            data = os.read(0, 65536)
            if not data:
                break
            log.write(data)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
