"""The screen's application with the services of core.app."""

import os
from typing import TYPE_CHECKING

from trainwatch.core.app.errors import CliError
from trainwatch.core.app.runs.known_runs import RunDirectory, home
from trainwatch.core.app.screen.later import later
from trainwatch.core.app.screen.run_picker import MachineRuns
from trainwatch.tui.app import TrainwatchApp
from trainwatch.tui.ui.terminal import in_browser

if TYPE_CHECKING:
    from trainwatch.core.model.ports.screen import Attacher, Launcher, SupervisorStarter


def app_for(run: RunDirectory | None, *, read_only: bool, launch_first: bool = False) -> TrainwatchApp:
    """The application on a run, on the list of runs, or on what this folder could start (``launch_first``)."""
    runs = _runs()
    return TrainwatchApp(
        None if run is None else runs.open(run.id),
        starter=later(_starter),
        attacher=None if in_browser(os.environ) else later(_attacher),
        picker=runs,
        launcher=later(_launcher),
        launch_first=launch_first,
        read_only=read_only,
        home=home(),
    )


def _runs() -> MachineRuns:
    """The runs of this machine, and of the others if some are named. A file with problems names none."""
    from trainwatch.core.app.hosts.known_hosts import all_hosts

    try:
        hosts = all_hosts()
    except CliError:
        hosts = {}
    if not hosts:
        return MachineRuns()
    from trainwatch.core.app.hosts.far_runs import FarRuns

    return MachineRuns(FarRuns(hosts.values()))


# What the first picture does not need is loaded when it is used.


def _starter() -> "SupervisorStarter":
    from trainwatch.core.app.screen.supervisors import DetachedStarter

    return DetachedStarter()


def _attacher() -> "Attacher":
    from trainwatch.core.app.screen.supervisors import RunAttacher

    return RunAttacher()


def _launcher() -> "Launcher":
    from trainwatch.core.app.screen.folder_launcher import FolderLauncher

    return FolderLauncher()
