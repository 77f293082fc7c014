"""``trainwatch export [RUN]``: a run's observations as a trace, or the series of its history as a table."""

import argparse
import sys
from pathlib import Path
from typing import get_args

from trainwatch.core.app.errors import CliError, ExitCode

from ..output import warn
from ..run_argument import add_run

HELP = "write the measured values of a run as CSV, JSON or Parquet"
DESCRIPTION = (
    "--csv, --jsonl and --parquet write every series of the run's history (progress, GPUs, host, process, and the "
    "numbers that the trainer logs by name), one row a point: run, metric, seconds of the run, UTC time, attempt, "
    "step, mean, min, max, unit; to standard output, or to the new file of -o. Points are as fine as the history keeps "
    "them: a second in the last hour, ten minutes after eight days. --trace writes the observations of the sensors "
    "(bounded), for `trainwatch replay` or a bug report. --metrics writes only the trainer's own numbers, as CSV. "
    "Tokens, passwords and values of secret variables are removed from texts."
)
EXAMPLE = "--csv -o night.csv"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from trainwatch.core.app.metrics_out.series_export import Format

    add_run(parser)
    what = parser.add_mutually_exclusive_group(required=True)
    for form, words in zip(get_args(Format), ("CSV", "JSON lines", "Parquet (needs pyarrow)"), strict=True):
        what.add_argument(
            f"--{form}", dest="form", action="store_const", const=form, help=f"all series of the history as {words}"
        )
    what.add_argument("--trace", metavar="F", help="file to write the observations to; must not exist")
    what.add_argument("--metrics", metavar="F", help="file to write the trainer's numbers to; must not exist")
    parser.add_argument("-o", "--output", metavar="F", help="file for --csv, --jsonl, --parquet; must not exist")


def act(args: argparse.Namespace) -> int:
    from trainwatch.core.app.traces import export_metrics, export_trace

    if args.form is not None:
        return _series(args)
    if args.output is not None:
        raise CliError(ExitCode.USAGE, "-o is for --csv, --jsonl and --parquet; --trace and --metrics name their file")
    if args.metrics is not None:
        print(f"{export_metrics(args.run, Path(args.metrics), warn)}: written")
        return ExitCode.DONE
    done = export_trace(args.run, Path(args.trace), warn)
    if done.skipped:
        warn(f"unreadable lines left out: {done.skipped}; {done.problem}")
    print(f"{done.path}: written")
    return ExitCode.DONE


def _series(args: argparse.Namespace) -> int:
    from trainwatch.core.app.metrics_out.series_export import export_series

    if args.output not in {None, "-"}:
        rows = export_series(args.run, args.form, Path(args.output), warn)
        print(f"{args.output}: {rows:,} rows written")
        return ExitCode.DONE
    if args.form == "parquet" and sys.stdout.isatty():
        raise CliError(ExitCode.USAGE, "Parquet is no text for a terminal: name a file with -o F")
    sys.stdout.flush()
    export_series(args.run, args.form, sys.stdout.buffer, warn)
    sys.stdout.buffer.flush()
    return ExitCode.DONE
