"""A rehearsal from the launch screen: ``trainwatch rehearse`` in a child process."""

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from ...model.launch.rehearsal import Rehearsal

LOOK_S = 0.2
ENDING_S = 60.0
"""Time for an interrupted rehearsal to end its trainer and remove its scratch folder."""


def rehearse_in_child(
    words: Sequence[str], cwd: Path, say: Callable[[str], None], wanted: Callable[[], bool]
) -> Rehearsal:
    """Run ``trainwatch rehearse WORDS``. ``say`` gets its lines of progress. Raises RuntimeError with a sentence.

    It is interrupted when ``wanted`` returns False.
    """
    # A session of its own: if the terminal closes, it still ends its trainer and removes what it wrote.
    child = subprocess.Popen(
        [sys.executable, "-m", "trainwatch", "rehearse", "--json", *words],
        cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    said: list[str] = []

    def hear() -> None:
        for line in child.stderr or ():
            said.append(
                line.decode("utf-8", "replace").strip().removeprefix("rehearsal: ").removeprefix("trainwatch: ")
            )
            say(said[-1])

    listener = threading.Thread(target=hear, name="rehearsal", daemon=True)
    listener.start()
    watcher = threading.Thread(target=_interrupt, args=(child, wanted), name="rehearsal-end", daemon=True)
    watcher.start()
    out = child.stdout.read() if child.stdout is not None else b""
    child.wait()
    listener.join(ENDING_S)
    try:
        found = json.loads(out)
        return msgspec.convert({**found, **found["resume"]}, Rehearsal)
    except (ValueError, KeyError, TypeError, msgspec.ValidationError):
        last = said[-1] if said else f"the rehearsal ended with {child.returncode} without a result"
        raise RuntimeError("interrupted; nothing is left" if child.returncode == 130 else last) from None


def _interrupt(child: "subprocess.Popen[bytes]", wanted: Callable[[], bool]) -> None:
    while child.poll() is None:
        if not wanted():
            child.send_signal(signal.SIGINT)
            return
        time.sleep(LOOK_S)
