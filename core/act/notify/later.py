"""Sends the notices of a run that wait, when they are due: ``python -P -m trainwatch.core.act.notify.later FOLDER``.

Started by a supervisor that ends before the quiet hours do. It ends when none is left, or when a new supervisor has
sent them.
"""

import os
import sys
import time
from pathlib import Path

import msgspec

from ...model.run import RunSpec
from .held_notices import HeldNotices, together
from .notices import send_notice

LOOK_S = 30.0


def main(arguments: list[str]) -> int:
    """Wait and send, in a process that nobody waits for. 1: a notice was not delivered, or the folder is gone."""
    if os.fork():
        os._exit(0)
    folder = Path(arguments[0])
    held = HeldNotices(folder)
    sent = True
    while (due := held.due()) is not None:
        wait_s = due - time.time()
        if wait_s > 0:
            time.sleep(min(wait_s, LOOK_S))
            continue
        try:
            spec = msgspec.json.decode((folder / "run.json").read_bytes(), type=RunSpec)
            taken = held.take(time.time())
        except (OSError, msgspec.MsgspecError):
            return 1
        if taken:
            whole = together(spec.name, taken)
            sent = send_notice(spec, whole.event, whole.title, whole.body, whole.incident)[0] and sent
    return 0 if sent else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
