"""``trainwatch notify test``: send one notice to everybody whom ``[notify]`` names."""

import argparse

from trainwatch.core.app.errors import ExitCode

from ..output import print_json
from ..run_argument import RUN_HELP

HELP = "send a test notice to all that [notify] names"
DESCRIPTION = (
    "`trainwatch notify test` sends one notice as a run would, and says who was notified. It needs a trainwatch.toml "
    "with [notify] urls or command, or a run that was started with one."
)
EXAMPLE = "test"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parts = parser.add_subparsers(title="parts", metavar="PART", dest="part", required=True)
    test = parts.add_parser("test", description=DESCRIPTION, help=HELP, epilog="example: trainwatch notify test")
    test.add_argument("run", nargs="?", help=RUN_HELP)
    test.add_argument("--json", action="store_true", help="one JSON object")


def act(args: argparse.Namespace) -> int:
    """1 if somebody was not notified."""
    from trainwatch.core.app.notify import send_test_notice

    result = send_test_notice(args.run)
    if args.json:
        print_json(result)
    else:
        print(f"{'ok' if result['ok'] else 'FAILED'}: {result['detail']}")
        if result["output"]:
            print(result["output"])
    return ExitCode.DONE if result["ok"] else ExitCode.FAILED
