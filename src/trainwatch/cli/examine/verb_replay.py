"""``trainwatch replay TRACE [--set KEY=VALUE …]``: feed a recorded trace to the judge under a virtual clock."""

import argparse

from trainwatch.core.app.errors import ExitCode

from ..output import print_json, warn
from .log_input import byte_lines

HELP = "feed a recorded trace to the judge"
DESCRIPTION = "Shows what trainwatch would have detected and decided, with other settings if you like."
EXAMPLE = "night.jsonl --set hang.deadline_factor=4 --json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("trace", help="a trace (JSON lines, also compressed), from `trainwatch export --trace`, or -")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="a setting, such as hang.min_s=60"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object")


def act(args: argparse.Namespace) -> int:
    """0 whenever the trace could be read."""
    from trainwatch.core.app.traces import replay_trace

    with byte_lines(args.trace, what="trace") as lines:
        result = replay_trace(args.trace, lines, args.set)
    if unreadable := result.get("unreadable_lines"):
        warn(f"unreadable lines skipped: {unreadable}; the first is {args.trace}:{result['first_unreadable']}")
    if args.json:
        print_json(result)
        return ExitCode.DONE
    for incident in result["incidents"]:
        print(f"{incident['t']:>10.1f} s  {incident['kind']:8} {incident['class']:20} {incident['reason']}")
    for decision in result["decisions"]:
        print(f"{decision['t']:>10.1f} s  -> {decision['decision']:17} {decision['reason']}")
    print(f"{result['observations']} observations, at the end: {result['final_state']}")
    return ExitCode.DONE
