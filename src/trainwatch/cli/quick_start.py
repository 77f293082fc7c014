"""What makes a verb or the screen start sooner: the garbage collector, and how msgspec is loaded.

The collector would traverse the new modules again and again, a sixth of the time to the first frame (measured).
Afterwards it runs as usual, and the loaded modules are frozen: they are not traversed while the process runs.
"""

import gc
import sys

AS_USUAL = gc.get_threshold()
REST_S = 2.0
"""Longer than the first frame takes on a slow machine; at most some megabytes of garbage collect meanwhile."""


def rest_collector(rest_s: float = REST_S) -> None:
    """Switch the collector off for that time."""
    import threading

    gc.disable()
    timer = threading.Timer(rest_s, _wake)
    timer.daemon = True
    timer.start()


def _wake() -> None:
    gc.freeze()
    gc.set_threshold(*AS_USUAL)
    gc.enable()


def rest_collector_while_loading() -> None:
    """Let the collector run seldom: a short verb loads modules, prints and ends, and makes no garbage of note.

    ``collector_as_usual`` ends it, in verbs that stay.
    """
    gc.set_threshold(50_000, 20, 50)


def collector_as_usual() -> None:
    """Python's own pace again, for a process that stays. What is loaded by now is not traversed any more."""
    if gc.get_threshold() != AS_USUAL:
        gc.freeze()
        gc.set_threshold(*AS_USUAL)


def leave_collector_out() -> None:
    """Spare the end of the process the traversal of everything that was loaded: a tenth of a short verb's time."""
    gc.freeze()


def load_msgspec_quickly() -> None:
    """Load msgspec without ``typing_extensions``, which it does not need, but uses if it is there.

    That module and what it loads take as long as a third of Python's own start.
    """
    name = "typing_extensions"
    if name in sys.modules or "msgspec" in sys.modules:
        return
    sys.modules[name] = None  # type: ignore[assignment]  # the documented way to have an import fail
    try:
        import msgspec  # noqa: F401
    except ImportError:
        pass  # a version that does need it: loaded where it is used
    finally:
        del sys.modules[name]
