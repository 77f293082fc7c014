"""``trainwatch export [RUN] --trace F``: write a run's recorded observations as a trace."""

import argparse
import shutil
from pathlib import Path
from typing import Any

from .failure import CliError, ExitCode
from .known_runs import RUN_HELP, find_run


def add(subparsers: Any) -> None:
    """Register the verb."""
    parser = subparsers.add_parser(
        "export",
        help="write a run's recorded observations as a trace",
        description="Copies what the sensors saw (bounded), for `trainwatch replay` or a bug report.",
        epilog="example: trainwatch export --trace night.jsonl",
    )
    parser.add_argument("run", nargs="?", help=RUN_HELP)
    parser.add_argument("--trace", required=True, metavar="F", help="file to write; must not exist")
    parser.set_defaults(act=act)


def act(args: argparse.Namespace) -> int:
    """Copy the trace; never overwrites."""
    run = find_run(args.run, newest=True)
    target = Path(args.trace)
    if not run.trace.exists():
        raise CliError(ExitCode.NOT_FOUND, f"{run.id} has recorded nothing yet")
    if target.exists():
        raise CliError(ExitCode.USAGE, f"{target}: already exists; choose another name")
    try:
        with run.trace.open("rb") as source, target.open("xb") as copy:
            shutil.copyfileobj(source, copy)
    except OSError as error:
        raise CliError(ExitCode.FAILED, f"{target}: {error.strerror or error}") from None
    print(f"{target}: written")
    return ExitCode.DONE
