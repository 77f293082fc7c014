"""``trainwatch``: the screen on this project's run. ``trainwatch --headless``: supervise it without a screen."""

import argparse
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainwatch.core.app.errors import ExitCode

from .output import put, warn
from .verb import arg, flag

if TYPE_CHECKING:
    from trainwatch.core.app.runs.known_runs import RunDirectory
    from trainwatch.tui.app import TrainwatchApp


ARGUMENTS = (
    flag("--headless", "supervise this project's run without a screen"),
    arg("--on", metavar="HOST",
        help="run the verb, or open the screen, on a host of [hosts]; `runs --on all`: this one and all"),
    arg("--run", dest="run_name", metavar="NAME", help="which run, if there are several"),
    arg("--interval", dest="interval_s", type=float, metavar="S",
        help="period of the health line, seconds (--headless)"),
    arg("--max-restarts", type=int, metavar="N", help="restarts without progress (--headless)"),
    arg("--profile", metavar="P", help="profile to start with (--headless)"),
    flag("--force", "start although a check fails (--headless)"),
    flag("--stop-trainer", "with --headless: SIGTERM ends the training, too (without it, the training continues)"),
    flag("--read-only", "a screen that can change nothing"),
)  # fmt: skip


def act(args: argparse.Namespace) -> int:
    """Open the screen, or watch in the foreground; without a terminal: the plain status."""
    if args.headless:
        from trainwatch.core.app.start.project_run import project_run

        from .events import supervise_and_print
        from .output import outlive_reader
        from .start import overrides_of, tell

        outlive_reader()
        ready = project_run(args.run_name, overrides_of(args), to_start=True, forced=args.force)
        tell(ready)
        return supervise_and_print(
            ready.run, plan=ready.plan, first=ready.first, stop_trainer=args.stop_trainer, claim=ready.claim
        )
    from trainwatch.tui.ui.terminal import can_show_screen

    if not can_show_screen():
        return _plain(args)
    from trainwatch.core.app.runs.known_runs import run_at_hand

    changes = any(each is not None for each in (args.interval_s, args.max_restarts, args.profile))
    if not changes and (run := run_at_hand(args.run_name)) is not None:
        return open_screen(run, read_only=args.read_only)
    from trainwatch.core.app.start.project_run import nothing_started_here, run_to_show

    from .start import overrides_of

    if not args.read_only and args.run_name is None and nothing_started_here():
        return open_screen(None, launch_first=True)
    return open_screen(run_to_show(args.run_name, overrides_of(args)), read_only=args.read_only)


def _plain(args: argparse.Namespace) -> int:
    """Without a terminal: print what ``status`` would print."""
    from trainwatch.core.app.runs.run_status import read_run
    from trainwatch.core.app.start.project_run import run_to_show

    from .start import overrides_of
    from .status_text import status_lines
    from .watch import runs_verb as show_runs

    run = run_to_show(args.run_name, overrides_of(args))
    args.json = args.all = False
    return show_runs(args) if run is None else put(args, None, *status_lines(read_run(run).status))


def open_screen(run: "RunDirectory | None", *, read_only: bool = False, launch_first: bool = False) -> int:
    """Show the screen on a run, or the list of runs (None). Training and supervisor continue when it closes.

    ``launch_first``: without a run, begin with what this folder could start.
    """
    return show(app_for(run, read_only=read_only, launch_first=launch_first))


def app_for(run: "RunDirectory | None", *, read_only: bool, launch_first: bool = False) -> "TrainwatchApp":
    """The application on a run, on the list of runs, or on what this folder could start (``launch_first``)."""
    from trainwatch.core.app.runs.known_runs import home
    from trainwatch.core.app.screen.run_picker import MachineRuns
    from trainwatch.core.app.screen.run_services import Later
    from trainwatch.tui.app import TrainwatchApp

    runs = MachineRuns()
    launcher: Any = Later(".folder_launcher", "FolderLauncher")
    return TrainwatchApp(
        None if run is None else runs.open(run.id),
        picker=runs,
        launcher=launcher,
        launch_first=launch_first,
        read_only=read_only,
        home=home(),
    )


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
