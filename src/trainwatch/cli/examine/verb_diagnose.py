"""``trainwatch diagnose LOG|- [--exit-code N]``: report why a run failed, from its log."""

import argparse

from trainwatch.core.app.errors import ExitCode

from ..output import print_json, warn
from .log_input import text_blocks

HELP = "why a run failed, from its log"
DESCRIPTION = (
    "Reads a log once and reports the failure class, the first cause and its consequences. Patterns for messages "
    "that it does not recognise can be set in trainwatch.toml ([diagnose] patterns)."
)
EXAMPLE = "outputs/train.log --exit-code 1 --json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("log", help="the log, or - for standard input")
    parser.add_argument("--exit-code", type=int, help="exit code of the trainer (negative or 128+N: a signal)")
    parser.add_argument("--json", action="store_true", help="one JSON object")


def act(args: argparse.Namespace) -> int:
    """0 whenever there is an answer (``unknown`` included)."""
    from trainwatch.core.app.logs import diagnose_log

    diagnosis = diagnose_log(text_blocks(args.log), args.exit_code, warn)
    if args.json:
        print_json(diagnosis)
        return ExitCode.DONE
    restart = "a restart may help" if diagnosis.retryable else "a restart would fail again"
    print(f"{diagnosis.failure}  ({diagnosis.title}, {diagnosis.confidence:.0%} sure; {restart})")
    if diagnosis.explanation:
        print(f"  {diagnosis.explanation}")
    if diagnosis.cause is not None:
        print(f"  cause    line {diagnosis.cause.line}: {diagnosis.cause.text}")
    follows = "last   " if diagnosis.failure == "unknown" else "cascade"
    for line in diagnosis.cascade:
        print(f"  {follows}  line {line.line}: {line.text}")
    for remedy in diagnosis.remedies:
        print(f"  remedy   {remedy}")
    return ExitCode.DONE
