"""Suspends the screen while another program uses the terminal."""

import signal
import subprocess
from collections.abc import Callable, Sequence

from textual.app import App, SuspendNotSupported


def use_terminal(app: App[object], work: Callable[[], None], unable: str = "This terminal cannot be suspended") -> str:
    """Do ``work``, which has the terminal until it ends. Returns a sentence if it could not be done, else nothing.

    ``work`` may raise RuntimeError with one; ``unable``: that of a screen in a browser.
    """
    # Ctrl-C in that program reaches our whole process group: it must end that program only.
    # A handler, not SIG_IGN, because an ignored signal would be inherited by the program.
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        with app.suspend():
            work()
    except SuspendNotSupported:
        return unable
    except RuntimeError as error:
        return str(error)
    finally:
        signal.signal(signal.SIGINT, before)
    return ""


def run_in_terminal(app: App[object], argv: Sequence[str]) -> str:
    """Run ``argv`` in the foreground until it ends. Returns a sentence on how it ended."""
    from ..core.bound_process import bound  # loads ctypes, which nothing else on the screen needs

    def run() -> None:
        try:
            code = subprocess.call(bound(argv, at_end=signal.SIGHUP))
        except OSError as error:
            raise RuntimeError(f"{argv[0]}: {error.strerror}") from error
        if code:
            raise RuntimeError(f"{argv[0]} ended with {code}")

    return use_terminal(app, run) or "Back. The training was not touched."
