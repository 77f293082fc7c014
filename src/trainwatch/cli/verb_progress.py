"""``trainwatch progress LOG|-``: what the log says about progress, after its last line."""

import argparse
from typing import Any

import msgspec

from trainwatch.core.app.errors import ExitCode

from .log_input import text_blocks
from .output import print_json
from .own_lines import project_settings


def add(subparsers: Any) -> None:
    """Register the verb."""
    parser = subparsers.add_parser(
        "progress",
        help="what a log says about progress",
        description="Reads a log once and says where the training stands after its last line. Forms of lines that it "
        "does not know can be told in trainwatch.toml ([progress] shapes).",
        epilog="example: trainwatch progress outputs/train.log --json",
    )
    parser.add_argument("log", help="the log, or - for standard input")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.set_defaults(act=act)


def act(args: argparse.Namespace) -> int:
    """Print the progress; unknown values are null (JSON) or left out (text)."""
    from trainwatch.core.judge.progress.log_progress import progress_of
    from trainwatch.core.judge.text.line_shapes import shapes_of

    progress = progress_of(text_blocks(args.log), shapes_of(project_settings().progress.shapes))
    if args.json:
        print_json(progress)
        return ExitCode.DONE
    for name, value in msgspec.structs.asdict(progress).items():
        if value is not None:
            print(f"{name:14} {value}")
    return ExitCode.DONE
