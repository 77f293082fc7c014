"""The screen's application with the services of core.app."""

import os

from trainwatch.core.app.runs.known_runs import RunDirectory, home
from trainwatch.core.app.screen.folder_launcher import FolderLauncher
from trainwatch.core.app.screen.run_picker import MachineRuns
from trainwatch.core.app.screen.supervisors import DetachedStarter, RunAttacher
from trainwatch.tui.app import TrainwatchApp
from trainwatch.tui.ui.terminal import in_browser


def app_for(run: RunDirectory | None, *, read_only: bool, launch_first: bool = False) -> TrainwatchApp:
    """The application on a run, on the list of runs, or on what this folder could start (``launch_first``)."""
    runs = MachineRuns()
    return TrainwatchApp(
        None if run is None else runs.open(run.id),
        starter=DetachedStarter(),
        attacher=None if in_browser(os.environ) else RunAttacher(),
        picker=runs,
        launcher=FolderLauncher(),
        launch_first=launch_first,
        read_only=read_only,
        home=home(),
    )
