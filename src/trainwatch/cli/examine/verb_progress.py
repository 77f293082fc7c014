"""``trainwatch progress LOG|-``: report the progress that a log shows, after its last line."""

import argparse

import msgspec

from trainwatch.core.app.errors import ExitCode

from ..output import print_json, warn
from .log_input import text_blocks

HELP = "the progress that a log shows"
DESCRIPTION = (
    "Reads a log once and reports the progress of the training after its last line. Patterns for lines that it does "
    "not recognise can be set in trainwatch.toml ([progress] shapes)."
)
EXAMPLE = "outputs/train.log --json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("log", help="the log, or - for standard input")
    parser.add_argument("--json", action="store_true", help="one JSON object")


def act(args: argparse.Namespace) -> int:
    """Print the progress; unknown values are null (JSON) or left out (text)."""
    from trainwatch.core.app.logs import progress_in_log

    progress = progress_in_log(text_blocks(args.log), warn)
    if args.json:
        print_json(progress)
        return ExitCode.DONE
    for name, value in msgspec.structs.asdict(progress).items():
        if value is not None:
            print(f"{name:14} {value}")
    return ExitCode.DONE
