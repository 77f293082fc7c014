"""``trainwatch progress LOG|-``: report the progress that a log shows, after its last line."""

import argparse
from typing import TYPE_CHECKING

from trainwatch.core.app.errors import ExitCode

from ..output import print_json, warn
from .log_input import text_blocks

if TYPE_CHECKING:
    from trainwatch.core.app.logs import LogMetrics

HELP = "the progress that a log shows"
DESCRIPTION = (
    "Reads a log once and reports the progress of the training after its last line. Patterns for lines that it does "
    "not recognise can be set in trainwatch.toml ([progress] shapes)."
)
EXAMPLE = "outputs/train.log --json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("log", help="the log, or - for standard input")
    parser.add_argument(
        "--all", action="store_true", help="also the newest value of every number that it prints by name"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object")


def act(args: argparse.Namespace) -> int:
    """Print the progress; unknown values are null (JSON) or left out (text)."""
    import msgspec

    from trainwatch.core.app.logs import metrics_in_log, progress_in_log

    metrics: LogMetrics | None = None
    if args.all:
        progress, metrics = metrics_in_log(text_blocks(args.log), warn)
    else:
        progress = progress_in_log(text_blocks(args.log), warn)
    shown = msgspec.structs.asdict(progress)
    if args.json:
        also = {} if metrics is None else {"metrics": metrics.values, "metrics_left_out": metrics.left_out}
        print_json({**shown, **also})
        return ExitCode.DONE
    for name, value in shown.items():
        if value is not None:
            print(f"{name:14} {value}")
    if metrics is not None:
        _print_metrics(metrics)
    return ExitCode.DONE


def _print_metrics(metrics: "LogMetrics") -> None:
    width = max((len(name) for name in metrics.values), default=0)
    print("\nmetrics" if metrics.values else "\nno metrics: no training line with a name and a number")
    for name, value in metrics.values.items():
        print(f"  {name:{width}}  {'NaN or infinite' if value is None else f'{value:.6g}'}")
    if metrics.left_out:
        print(f"  {metrics.left_out} more names are left out")
