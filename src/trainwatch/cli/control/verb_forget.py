"""``trainwatch forget RUN`` and ``forget --old``: remove what trainwatch has kept about a run."""

import argparse
import sys

from trainwatch.core.app.errors import CliError, ExitCode

from ..operation import confirm
from ..run_argument import run_of

HELP = "remove what is kept about a run that is over; its outputs stay"
DESCRIPTION = (
    "Removes the run's folder in the state folder: journal, logs, charts, evidence. Checkpoints and all other files of "
    "your training stay where they are. Refused while a supervisor or the trainer is alive. "
    "--old: removes ended runs, but keeps the newest of each job, as many as [state] keep says; asks for each."
)
EXAMPLE = "luca"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", nargs="?", help="name or id of the run")
    parser.add_argument("--old", action="store_true", help="ended runs beyond [state] keep of their job, one by one")
    parser.add_argument("--keep", type=int, metavar="N", help="with --old: keep the newest N of each job")
    parser.add_argument("--yes", "-y", action="store_true", help="do not ask")


def act(args: argparse.Namespace) -> int:
    """0 if it was removed, or if there is none to remove."""
    if args.old == (args.run is not None):
        raise CliError(ExitCode.USAGE, "name the run, or give --old for ended runs beyond [state] keep")
    if args.keep is not None and (not args.old or args.keep < 1):
        raise CliError(ExitCode.USAGE, "--keep N goes with --old and is at least 1")
    if args.old:
        return _forget_old(args)
    from trainwatch.core.app.runs.forgetting import forget, kept_about

    run = run_of(args)
    kept = kept_about(run)
    if not args.yes:
        if not sys.stdin.isatty():
            raise CliError(ExitCode.USAGE, f"this removes {kept}; add --yes if that is meant")
        confirm(f"Remove {kept}? Checkpoints and other outputs stay.")
    forget(run)
    print(f"removed: {kept}")
    return ExitCode.DONE


def _forget_old(args: argparse.Namespace) -> int:
    """Asks for each; one that must not go is named, and the others are asked for all the same."""
    from trainwatch.core.app.runs.forgetting import forget, kept_about, old_runs

    found = old_runs(args.keep)
    if not found:
        print("no ended run is beyond what is kept ([state] keep, or --keep N)")
    if found and not args.yes and not sys.stdin.isatty():
        names = ", ".join(f"{run.id} ({state})" for run, state in found)
        raise CliError(ExitCode.USAGE, f"this removes what is kept about {names}; add --yes if that is meant")
    for run, state in found:
        try:
            kept = kept_about(run)
        except CliError as error:
            print(error, file=sys.stderr)
            continue
        if not args.yes:
            answer = input(f"{state}: remove {kept}? Checkpoints and other outputs stay. [y/N] ")
            if answer.strip().lower() not in {"y", "yes"}:
                continue
        forget(run)
        print(f"removed: {kept}")
    return ExitCode.DONE
