"""``trainwatch diagnose LOG|- [--exit-code N]``: what killed this run, from its log."""

import argparse
from typing import Any

from trainwatch.core.app.errors import ExitCode

from .log_input import text_blocks
from .output import print_json
from .own_lines import project_settings


def add(subparsers: Any) -> None:
    """Register the verb."""
    parser = subparsers.add_parser(
        "diagnose",
        help="what killed this run, from its log",
        description="Reads a log once and names the failure, its first cause and its consequences. Messages that it "
        "does not know can be told in trainwatch.toml ([diagnose] patterns).",
        epilog="example: trainwatch diagnose outputs/train.log --exit-code 1 --json",
    )
    parser.add_argument("log", help="the log, or - for standard input")
    parser.add_argument("--exit-code", type=int, help="exit code of the trainer (negative or 128+N: a signal)")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.set_defaults(act=act)


def act(args: argparse.Namespace) -> int:
    """Print the diagnosis; 0 whenever an answer (``unknown`` included) could be given."""
    from trainwatch.core.config.shipped import load_failures
    from trainwatch.core.judge.failure.catalogue import own_signatures
    from trainwatch.core.judge.failure.diagnosis import compile_catalogue, diagnosis_of

    catalogue = compile_catalogue(load_failures(), own_signatures(project_settings().diagnose.patterns))
    diagnosis = diagnosis_of(text_blocks(args.log), catalogue, args.exit_code)
    if args.json:
        print_json(diagnosis)
        return ExitCode.DONE
    retry = "worth a retry" if diagnosis.retryable else "a retry would fail again"
    print(f"{diagnosis.failure}  ({diagnosis.confidence:.0%} sure, {retry})")
    if diagnosis.explanation:
        print(f"  {diagnosis.explanation}")
    if diagnosis.cause is not None:
        print(f"  cause    line {diagnosis.cause.line}: {diagnosis.cause.text}")
    follows = "said   " if diagnosis.failure == "unknown" else "cascade"
    for line in diagnosis.cascade:
        print(f"  {follows}  line {line.line}: {line.text}")
    for remedy in diagnosis.remedies:
        print(f"  try      {remedy}")
    return ExitCode.DONE
