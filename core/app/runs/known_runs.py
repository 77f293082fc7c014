"""Finding the run that a verb means, and reading its state from outside (no supervisor needed)."""

import os
import sys
import time
from pathlib import Path
from typing import Any

from ...model.run import RunSpec
from ...store.home import NoHomeError, trainwatch_home
from ...store.lock import is_held
from ...store.run_directory import AmbiguousRun, RunDirectory, RunNotFound, RunUnreadable, list_runs
from ...store.run_directory import find_run as find_known_run
from ..errors import CliError, ExitCode

STAND_INS = ("demo", "drill")
"""Verbs that run example trainers; the projects of each lie in a folder of its name in the state folder."""
RUN_HELP = "name or id of a run (default: this project's, else the one started in this folder, else the only one)"


def home() -> Path:
    """The state folder of this user (``TRAINWATCH_HOME``)."""
    try:
        return trainwatch_home(os.environ)
    except NoHomeError as error:
        raise CliError(ExitCode.USAGE, str(error)) from None


def all_runs() -> list[RunDirectory]:
    """Every run that can be opened, newest first."""
    return list_runs(home())


def stand_in_of(spec: RunSpec) -> str | None:
    """The verb whose example a run was; None for people's own."""
    place, state = Path(spec.cwd).resolve(), home().resolve()
    return next((verb for verb in STAND_INS if place.is_relative_to(state / verb)), None)


def here() -> Path:
    """The working folder. Ends the verb with exit code 2 where it was deleted."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise CliError(ExitCode.USAGE, "the working folder does not exist any more: cd to one that does") from None


def find_run(name: str | None, *, newest: bool = False, anywhere: bool = True) -> RunDirectory:
    """The run that is meant; ends the verb with exit code 3 when there is none, 2 when several answer.

    ``newest``: where several answer and none was named, the newest live one will do, else the newest (verbs that only
    read). ``anywhere``: without a name, the only run there is may be one of another folder.
    """
    from ...config.project import find_project

    folder: Path | None = None
    try:
        folder = here()
    except CliError:
        if name is None:
            raise
    try:
        project = None if folder is None else find_project(folder)
        return find_known_run(home(), name, project=project, cwd=folder, anywhere=anywhere)
    except RunNotFound as error:
        raise CliError(ExitCode.NOT_FOUND, str(error)) from None
    except AmbiguousRun as error:
        if newest and name is None:
            known = all_runs()
            meant = next((run for run in known if is_held(run.lock)), known[0])
            print(  # noqa: T201  moves to the command line with the other output texts
                f"trainwatch: no run was started in this folder; this is {meant.id}", file=sys.stderr
            )
            return meant
        raise CliError(ExitCode.USAGE, str(error)) from None
    except RunUnreadable as error:
        raise CliError(ExitCode.FAILED, str(error)) from None


def idle_status(name: str) -> dict[str, Any] | None:
    """The status of a run that this project's file names and that was never started; None where it names none."""
    from ...config.problem import ConfigError
    from ...config.project import find_project, load_project
    from ...model.story import RunStory
    from ...store.run_directory import run_id_for
    from ...views.status import status_object

    try:
        path = find_project(here())
        if path is None or name not in load_project(path).runs:
            return None
    except (CliError, ConfigError):
        return None
    return status_object(
        RunStory(),
        run=name,
        run_id=run_id_for(name, path),
        wall=time.time(),
        gpu=None,
        host=None,
        progress=None,
        supervisor_pid=None,
    )


def read_status(run: RunDirectory) -> dict[str, Any]:
    """The status object of one run, from its journal, its metric history and its lock."""
    from ...store.history import HistoryReader
    from ...store.journal import load_story
    from ...store.lock import holder_pid
    from ...views.status import status_object
    from .unwatched import as_found

    with HistoryReader(run.history) as history:
        latest = history.latest()
    status = status_object(
        as_found(run, load_story(run.journal)),
        run=run.load_spec().name,
        run_id=run.id,
        wall=time.time(),
        gpu=latest.gpu,
        host=latest.host,
        progress=latest.progress.progress if latest.progress else None,
        step_t=latest.progress.step_t if latest.progress else None,
        supervisor_pid=holder_pid(run.lock),
    )
    newest = status["checkpoints"]["newest"]
    if newest is not None and newest["kind"] == "unknown":
        newest["kind"] = _kind_of(Path(newest["path"]))
    return status


def _kind_of(path: Path) -> str:
    """As ``checkpoints list`` says it: a journal knows a checkpoint by its name, the disk by what is in it."""
    from ...checkpoints import inspect

    try:
        seen = inspect(path)
    except OSError:
        return "unknown"
    return "unknown" if seen is None else seen.kind
