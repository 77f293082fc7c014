"""Leaving the screen to another program on the same terminal, and coming back."""

import signal
import subprocess
from collections.abc import Sequence

from textual.app import App, SuspendNotSupported


def visit(app: App[object], argv: Sequence[str]) -> str:
    """Run ``argv`` in the foreground until it ends. Returns a sentence on how it went."""
    # Ctrl-C in the visited program reaches our whole process group: there it ends that program, here it does nothing.
    # A handler, not SIG_IGN, because an ignored signal would be inherited by the program.
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        with app.suspend():
            code = subprocess.call(list(argv))
    except SuspendNotSupported:
        return "This terminal cannot be left and come back to"
    except OSError as error:
        return f"{argv[0]}: {error.strerror}"
    finally:
        signal.signal(signal.SIGINT, before)
    return "Back. The training was not touched." if code == 0 else f"{argv[0]} ended with {code}"
