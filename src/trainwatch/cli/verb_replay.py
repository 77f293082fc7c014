"""``trainwatch replay TRACE [--set KEY=VALUE …]``: feed a recorded trace to the judge under a virtual clock."""

import argparse
import sys
from typing import TYPE_CHECKING

from trainwatch.core.app.errors import CliError, ExitCode
from trainwatch.core.app.runs.known_runs import here

from .log_input import byte_lines
from .output import print_json

if TYPE_CHECKING:
    from trainwatch.core.model.settings import Settings


SECTION = "examine"
HELP = "feed a recorded trace to the judge"
DESCRIPTION = "Shows what trainwatch would have detected and decided, with other settings if you like."
EXAMPLE = "night.jsonl --set hang.deadline_factor=4 --json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("trace", help="a trace (JSON lines), from `trainwatch export --trace`, or -")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="a setting, such as hang.min_s=60"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object")


def act(args: argparse.Namespace) -> int:
    """Replay; 0 whenever the trace could be read."""
    from trainwatch.core.config.shipped import load_failures, load_log_shapes
    from trainwatch.core.replay import TraceError, replay

    try:
        with byte_lines(args.trace, what="trace") as lines:
            result = replay(lines, shapes=load_log_shapes(), catalogue=load_failures(), settings=_settings(args.set))
    except TraceError as error:
        raise CliError(ExitCode.USAGE, f"{args.trace}:{error}") from None
    except ValueError as error:
        raise CliError(ExitCode.USAGE, f"--set {error}") from None
    if unreadable := result.get("unreadable_lines"):
        first = f"{args.trace}:{result['first_unreadable']}"
        print(f"trainwatch: unreadable lines skipped: {unreadable}; the first is {first}", file=sys.stderr)
    if args.json:
        print_json(result)
        return ExitCode.DONE
    for incident in result["incidents"]:
        print(f"{incident['t']:>10.1f} s  {incident['kind']:8} {incident['class']:20} {incident['reason']}")
    for decision in result["decisions"]:
        print(f"{decision['t']:>10.1f} s  -> {decision['decision']:17} {decision['reason']}")
    print(f"{result['observations']} observations, at the end: {result['final_state']}")
    return ExitCode.DONE


def _settings(words: list[str]) -> "Settings":
    from trainwatch.core.model.settings import Settings

    if not words:  # reading a TOML value loads more than a short replay
        return Settings()
    from trainwatch.core.config.location import FILE_NAME
    from trainwatch.core.config.overrides import with_overrides
    from trainwatch.core.config.problem import did_you_mean
    from trainwatch.core.config.shipped import load_profiles

    try:
        settings = with_overrides(Settings(), words)
    except ValueError as error:
        raise CliError(ExitCode.USAGE, str(error)) from None
    profile = settings.profiles.use
    known = load_profiles(here() / FILE_NAME) if profile is not None else {}
    if profile is not None and profile not in known:
        raise CliError(ExitCode.USAGE, f"--set profiles.use={profile}: unknown profile{did_you_mean(profile, known)}")
    return settings
