"""Suspends the screen while another program uses the terminal."""

import signal
import subprocess
from collections.abc import Sequence

from textual.app import App, SuspendNotSupported


def run_in_terminal(app: App[object], argv: Sequence[str]) -> str:
    """Run ``argv`` in the foreground until it ends. Returns a sentence on how it ended."""
    from ..core.bound_process import bound  # loads ctypes, which nothing else on the screen needs

    # Ctrl-C in that program reaches our whole process group: it must end that program only.
    # A handler, not SIG_IGN, because an ignored signal would be inherited by the program.
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        with app.suspend():
            code = subprocess.call(bound(argv, at_end=signal.SIGHUP))
    except SuspendNotSupported:
        return "This terminal cannot be suspended"
    except OSError as error:
        return f"{argv[0]}: {error.strerror}"
    finally:
        signal.signal(signal.SIGINT, before)
    return "Back. The training was not touched." if code == 0 else f"{argv[0]} ended with {code}"
