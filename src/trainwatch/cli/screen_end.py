"""What follows when the screen ends: its exit code, or the screen of the version that has replaced this one.

The screen loads a dialog or a page when it is first opened. If trainwatch's files were replaced meanwhile, as an
upgrade does, that may fail: the new file does not fit the old modules. The screen owns nothing, so it is opened anew.
"""

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from trainwatch.core.app.errors import ExitCode

from .output import warn

if TYPE_CHECKING:
    from trainwatch.tui.app import TrainwatchApp

PACKAGE = Path(__file__).absolute().parent.parent
SETTLED_S = 2.0
"""No file was replaced for so long: half an upgrade cannot be started."""
PATIENCE_S = 60.0


def show(app: "TrainwatchApp") -> int:
    """Run the screen to its end. Does not return if it failed because of replaced files: the new version runs then."""
    began = time.time()
    app.run()
    if not app.return_code:
        return ExitCode.DONE
    if _replaced_at() > began:
        end = time.time() + PATIENCE_S
        while time.time() < min(_replaced_at() + SETTLED_S, end):
            time.sleep(SETTLED_S / 4)
        warn("its files were replaced while the screen was open; the screen is opened anew")
        os.execv(sys.executable, sys.orig_argv)
    return ExitCode.FAILED


def _replaced_at() -> float:
    """When a source file of trainwatch was last replaced, in seconds since the epoch."""
    newest = 0.0
    for folder, _, files in os.walk(PACKAGE, followlinks=True):
        for name in files:
            if name.endswith(".py"):
                try:
                    newest = max(newest, os.stat(f"{folder}/{name}").st_ctime)  # noqa: PTH116  hundreds of files
                except OSError:
                    newest = time.time()  # it was there a moment ago
    return newest
