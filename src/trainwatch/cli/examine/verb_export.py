"""``trainwatch export [RUN] --trace F``: write a run's recorded observations as a trace."""

import argparse
from pathlib import Path

from trainwatch.core.app.errors import ExitCode

from ..output import warn
from ..run_argument import add_run

HELP = "write a run's recorded observations as a trace"
DESCRIPTION = (
    "Writes the observations of the sensors (bounded), for `trainwatch replay` or a bug report. Tokens, "
    "passwords and values of secret variables are removed from its texts."
)
EXAMPLE = "--trace night.jsonl"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    parser.add_argument("--trace", required=True, metavar="F", help="file to write; must not exist")


def act(args: argparse.Namespace) -> int:
    from trainwatch.core.app.traces import export_trace

    done = export_trace(args.run, Path(args.trace), warn)
    if done.skipped:
        warn(f"unreadable lines left out: {done.skipped}; {done.problem}")
    print(f"{done.path}: written")
    return ExitCode.DONE
