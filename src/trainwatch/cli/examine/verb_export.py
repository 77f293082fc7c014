"""``trainwatch export [RUN] --trace F | --metrics F``: write a run's observations as a trace, or its metrics as CSV."""

import argparse
from pathlib import Path

from trainwatch.core.app.errors import ExitCode

from ..output import warn
from ..run_argument import add_run

HELP = "write a run's recorded observations as a trace, or its metrics as CSV"
DESCRIPTION = (
    "Writes the observations of the sensors (bounded), for `trainwatch replay` or a bug report. Tokens, "
    "passwords and values of secret variables are removed from its texts. --metrics writes the numbers that the "
    "trainer logs by name (lr, grad norm, validation loss …) over the run: seconds, name, mean, min, max."
)
EXAMPLE = "--trace night.jsonl"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--trace", metavar="F", help="file to write the observations to; must not exist")
    what.add_argument("--metrics", metavar="F", help="file to write the trainer's numbers to; must not exist")


def act(args: argparse.Namespace) -> int:
    from trainwatch.core.app.traces import export_metrics, export_trace

    if args.metrics is not None:
        print(f"{export_metrics(args.run, Path(args.metrics), warn)}: written")
        return ExitCode.DONE
    done = export_trace(args.run, Path(args.trace), warn)
    if done.skipped:
        warn(f"unreadable lines left out: {done.skipped}; {done.problem}")
    print(f"{done.path}: written")
    return ExitCode.DONE
