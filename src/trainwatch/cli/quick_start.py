"""Switch Python's garbage collector off while the screen's modules are loaded, so that it opens sooner.

It would traverse the new modules again and again, a sixth of the time to the first frame (measured). Afterwards it is
switched on, and the loaded modules are frozen: they are not traversed while the screen runs.
"""

import gc
import threading

REST_S = 2.0
"""Longer than the first frame takes on a slow machine; at most some megabytes of garbage collect meanwhile."""


def rest_collector(rest_s: float = REST_S) -> None:
    """Switch the collector off for that time."""
    gc.disable()
    timer = threading.Timer(rest_s, _wake)
    timer.daemon = True
    timer.start()


def _wake() -> None:
    gc.freeze()
    gc.enable()
