"""The stop of a trainer whose container or job is being ended: the signal that it expects there, SIGTERM, first.

Only processes that catch SIGTERM get it (they save and end by it); loader workers would die of it while their trainer
saves. A trainer without a handler gets the usual sequence at once.
"""

import signal
import time

from ...model.ports.supervision import AttemptTarget
from ...model.settings import Restart
from ..processes import send_signal
from .save_request import catching
from .stopping import members

INTERRUPT_SHARE, TERMINATE_SHARE = 0.6, 0.3
"""Of a short time for a stop: most for the signal at which trainers save, the rest before SIGKILL."""
POLL_S = 0.1
REST_S = 1.5
"""Left for the usual sequence if the handler does not end it in time."""


def end_by_own_handler(target: AttemptTarget, within_s: float) -> float:
    """Send SIGTERM to those that catch it, and wait for the end of the tree. Returns the seconds that are left."""
    begun = time.monotonic()
    told = [process for process in catching(members(target), signal.SIGTERM) if _sent(process.key)]
    while told and members(target):
        if time.monotonic() - begun >= within_s - REST_S:
            break
        time.sleep(POLL_S)
    return max(REST_S, within_s - (time.monotonic() - begun))


def _sent(key: tuple[int, int]) -> bool:
    try:
        return send_signal(key, signal.SIGTERM)
    except OSError:
        return False


def graces(restart: Restart, within_s: float | None) -> tuple[float, float]:
    """Seconds after the first and the second stop signal. ``within_s``: when the machine is ended; None = it is not."""
    interrupt_s, terminate_s = restart.interrupt_grace_s, restart.terminate_grace_s
    if within_s is None:
        return interrupt_s, terminate_s
    return min(interrupt_s, INTERRUPT_SHARE * within_s), min(terminate_s, TERMINATE_SHARE * within_s)
