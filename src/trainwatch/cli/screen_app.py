"""The screen's application with the services of core.app."""

import os
from typing import TYPE_CHECKING

from trainwatch.core.app.errors import CliError, ExitCode
from trainwatch.core.app.runs.known_runs import RunDirectory, home
from trainwatch.core.app.screen.later import later
from trainwatch.core.app.screen.run_picker import MachineRuns
from trainwatch.tui.app import TrainwatchApp
from trainwatch.tui.ui.terminal import in_browser

if TYPE_CHECKING:
    from trainwatch.core.model.ports.screen import Attacher, Launcher, OpenRun, SupervisorStarter
    from trainwatch.core.model.remote.host import Host


def app_for(run: RunDirectory | None, *, read_only: bool, launch_first: bool = False) -> TrainwatchApp:
    """The application on a run, on the list of runs, or on what this folder could start (``launch_first``)."""
    runs = _runs()
    return _app(runs, None if run is None else runs.open(run.id), read_only=read_only, launch_first=launch_first)


def app_on(host: "Host", run_name: str | None, *, read_only: bool, trouble: str) -> TrainwatchApp:
    """The application on a run of another machine: the one that is named, the only live one, else the list of runs.

    ``trouble``: why there is no line. Raises CliError if nothing is known of the machine, or of the run.
    """
    from trainwatch.core.app.screen.mirror.all_runs import AllRuns, first_run

    runs = _runs(host)
    assert isinstance(runs, AllRuns)
    run: OpenRun | None = None
    try:
        run_id = first_run(runs.hosts.known[host.name], run_name, trouble)
        run = None if run_id is None else runs.open(run_id)
    except LookupError as error:
        raise CliError(ExitCode.NOT_FOUND, str(error.args[0])) from None
    except RuntimeError as error:
        raise CliError(ExitCode.FAILED, str(error)) from None
    return _app(runs, run, read_only=read_only)


def _app(runs: MachineRuns, run: "OpenRun | None", *, read_only: bool, launch_first: bool = False) -> TrainwatchApp:
    starter: SupervisorStarter = later(_starter)
    attacher: Attacher | None = None if in_browser(os.environ) else later(_attacher)
    far = getattr(runs, "hosts", None)
    if far is not None:
        from trainwatch.core.app.screen.mirror.all_runs import AllAttachers, AllStarters

        starter = AllStarters(starter, far)
        attacher = None if attacher is None else AllAttachers(attacher, far)
    return TrainwatchApp(
        run,
        starter=starter,
        attacher=attacher,
        picker=runs,
        launcher=later(_launcher),
        launch_first=launch_first,
        read_only=read_only,
        home=home(),
    )


def _runs(host: "Host | None" = None) -> MachineRuns:
    """The runs of this machine, and of the others if some are named. A file with problems names none."""
    from trainwatch.core.app.hosts.known_hosts import all_hosts

    try:
        hosts = dict(all_hosts())
    except CliError:
        hosts = {}
    if host is not None:
        hosts[host.name] = host
    if not hosts:
        return MachineRuns()
    from trainwatch.core.app.screen.mirror.all_runs import AllRuns, FarHosts

    return AllRuns(FarHosts(list(hosts.values())))


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
