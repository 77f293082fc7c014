"""The screen's application with the services of core.app."""

import os
import sys
import time
from pathlib import Path
from typing import Any

from trainwatch.core.app.errors import CliError, ExitCode
from trainwatch.core.app.runs.known_runs import RunDirectory, home
from trainwatch.core.app.screen.run_picker import MachineRuns
from trainwatch.core.app.screen.run_services import Later
from trainwatch.core.app.screen.store_feed import DetachedStarter, RunAttacher
from trainwatch.tui.app import TrainwatchApp
from trainwatch.tui.ui.terminal import in_browser

from .output import warn


def app_for(run: RunDirectory | None, *, read_only: bool, launch_first: bool = False) -> TrainwatchApp:
    """The application on a run, on the list of runs, or on what this folder could start (``launch_first``)."""
    runs = _runs()
    launcher: Any = Later(".folder_launcher", "FolderLauncher")
    return TrainwatchApp(
        None if run is None else runs.open(run.id),
        starter=DetachedStarter(),
        attacher=None if in_browser(os.environ) else RunAttacher(),
        picker=runs,
        launcher=launcher,
        launch_first=launch_first,
        read_only=read_only,
        home=home(),
    )


def _runs() -> MachineRuns:
    """The runs of this machine, and of the others if some are named. A file with problems names none."""
    from trainwatch.core.app.hosts.run_there import all_hosts

    try:
        hosts = all_hosts()
    except CliError:
        hosts = {}
    if not hosts:
        return MachineRuns()
    from trainwatch.core.app.hosts.far_runs import FarRuns

    return MachineRuns(FarRuns(hosts.values()))


# What follows when the screen ends: its exit code, or the screen of the version that has replaced this one.
#
# The screen loads a dialog or a page when it is first opened. If trainwatch's files were replaced meanwhile, as an
# upgrade does, that may fail: the new file does not fit the old modules. The screen owns nothing, so it is opened
# anew.

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
