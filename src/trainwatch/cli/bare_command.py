"""``trainwatch``: the screen on this project's run. ``trainwatch --headless``: looking after it without one."""

import argparse
import sys
from typing import Any

from trainwatch.core.app.errors import CliError, ExitCode

from .launch_options import overrides_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command without a verb."""
    parser.add_argument("--headless", action="store_true", help="supervise this project's run without a screen")
    parser.add_argument("--run", dest="run_name", metavar="NAME", help="which run, if there are several")
    parser.add_argument("--interval", type=float, metavar="S", help="period of the health line, seconds (--headless)")
    parser.add_argument("--max-restarts", type=int, metavar="N", help="restarts without progress (--headless)")
    parser.add_argument("--profile", metavar="P", help="profile to start with (--headless)")
    parser.add_argument(
        "--stop-trainer",
        action="store_true",
        help="with --headless: SIGTERM ends the training, too (without it, the training goes on)",
    )
    parser.add_argument("--read-only", action="store_true", help="a screen that can change nothing")


def act(args: argparse.Namespace) -> int:
    """Open the screen, or watch in the foreground; without a terminal: the plain status."""
    if args.headless:
        from trainwatch.core.app.start.project_run import project_run

        from .event_printer import supervise_and_print

        ready = project_run(args.run_name, overrides_of(args), to_start=True)
        return supervise_and_print(ready.run, plan=ready.plan, stop_trainer=args.stop_trainer)
    from trainwatch.tui.ui.terminal import can_show_screen

    if not can_show_screen():
        return _plain(args)
    from .quick_start import rest_collector

    rest_collector()
    if args.run_name is None:
        from trainwatch.core.app.runs.watched_run import watched_run

        watched = watched_run()
        if watched is not None:
            return open_screen(watched, read_only=args.read_only)
    launch_first = not args.read_only and _to_be_launched(args)
    return open_screen(
        None if launch_first else _run_to_open(args), read_only=args.read_only, launch_first=launch_first
    )


def _to_be_launched(args: argparse.Namespace) -> bool:
    """A project here of which nothing was ever started: the screen shows what a start would be.

    So it does where the file is broken, or names several runs of which none was asked for.
    """
    from trainwatch.core.app.runs.known_runs import here, home
    from trainwatch.core.config.problem import ConfigError
    from trainwatch.core.config.project import find_project, load_project
    from trainwatch.core.store.home import runs_folder
    from trainwatch.core.store.run_directory import run_id_for

    path = find_project(here())
    if path is None or args.run_name is not None:
        return False
    try:
        names = list(load_project(path).runs)
    except ConfigError:
        return True
    return len(names) > 1 or not (runs_folder(home()) / run_id_for(names[0], path)).exists()


def _run_to_open(args: argparse.Namespace) -> Any:
    """The run of this project, or None: the list of runs."""
    from trainwatch.core.app.start.project_run import project_run

    try:
        return project_run(args.run_name, overrides_of(args)).run
    except CliError as error:
        if error.code is ExitCode.NOT_FOUND:
            return None
        raise


def _plain(args: argparse.Namespace) -> int:
    """No terminal to draw on: what ``status`` would say."""
    from trainwatch.core.app.runs.known_runs import read_status

    from .verb_runs import act as show_runs
    from .verb_status import status_lines

    run = _run_to_open(args)
    if run is None:
        args.json = False
        return show_runs(args)
    for line in status_lines(read_status(run)):
        print(line)
    sys.stdout.flush()
    return ExitCode.DONE


def open_screen(run: Any, *, read_only: bool = False, launch_first: bool = False) -> int:
    """Show the screen on a run (a RunDirectory), or the list of runs (None). Training and supervisor go on after it.

    ``launch_first``: without a run, begin with what this folder could start.
    """
    from .screen_doors import app_for

    app_for(run, read_only=read_only, launch_first=launch_first).run()
    return ExitCode.DONE
