"""``trainwatch replay TRACE [--set KEY=VALUE …]``: feed a recorded trace to the judge under a virtual clock."""

import argparse
from pathlib import Path
from typing import Any

from .failure import CliError, ExitCode
from .output import print_json


def add(subparsers: Any) -> None:
    """Register the verb."""
    parser = subparsers.add_parser(
        "replay",
        help="feed a recorded trace to the judge",
        description="Shows what trainwatch would have seen and decided, with other settings if you like.",
        epilog="example: trainwatch replay night.jsonl --set hang.deadline_factor=4 --json",
    )
    parser.add_argument("trace", help="a trace (JSON lines), from `trainwatch export --trace`")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="a setting, such as hang.min_s=60"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.set_defaults(act=act)


def act(args: argparse.Namespace) -> int:
    """Replay; 0 whenever the trace could be read."""
    from trainwatch.core.config.overrides import with_overrides
    from trainwatch.core.config.shipped import load_failures
    from trainwatch.core.model.settings import Settings
    from trainwatch.core.replay import TraceError, replay

    try:
        settings = with_overrides(Settings(), args.set)
    except ValueError as error:
        raise CliError(ExitCode.USAGE, str(error)) from None
    path = Path(args.trace)
    try:
        with path.open("rb") as lines:
            result = replay(lines, settings=settings, catalogue=load_failures())
    except FileNotFoundError:
        raise CliError(ExitCode.NOT_FOUND, f"{path}: no such trace") from None
    except TraceError as error:
        raise CliError(ExitCode.USAGE, f"{path}:{error}") from None
    if args.json:
        print_json(result)
        return ExitCode.DONE
    for incident in result["incidents"]:
        print(f"{incident['t']:>10.1f} s  {incident['kind']:8} {incident['class']:20} {incident['reason']}")
    for decision in result["decisions"]:
        print(f"{decision['t']:>10.1f} s  -> {decision['decision']:17} {decision['reason']}")
    print(f"{result['observations']} observations, at the end: {result['final_state']}")
    return ExitCode.DONE
