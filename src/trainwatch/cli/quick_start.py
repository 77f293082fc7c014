"""Starting the screen sooner: Python's garbage collector rests while some hundred modules are loaded.

It would look through all of what was just made again and again, a sixth of the time to the first picture (measured).
Then it is woken, and what was loaded is set apart for good: it is not looked through while the screen runs either.
"""

import gc
import threading

REST_S = 2.0
"""Longer than the first picture takes on a slow machine; some megabytes of garbage at most come together meanwhile."""


def rest_collector(rest_s: float = REST_S) -> None:
    """Let it rest for so long."""
    gc.disable()
    timer = threading.Timer(rest_s, _wake)
    timer.daemon = True
    timer.start()


def _wake() -> None:
    gc.freeze()
    gc.enable()
