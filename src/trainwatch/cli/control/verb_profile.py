"""``trainwatch profile NAME [RUN]``: switch a run to another profile of training settings."""

import argparse

from ..operation import add_operation, operate

HELP = "switch the settings profile, at the next checkpoint or --now"
DESCRIPTION = HELP
EXAMPLE = "conservative --now"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from trainwatch.core.model.shipped.profile import NO_PROFILE

    parser.add_argument(
        "profile",
        metavar="NAME",
        help=f"profile to switch to (see `trainwatch profiles`); {NO_PROFILE}: your own config as it stands",
    )
    when = parser.add_mutually_exclusive_group()
    when.add_argument("--now", action="store_true", help="restart at once")
    when.add_argument("--at-checkpoint", action="store_true", help="at the next checkpoint (the default)")
    add_operation(parser, asks=False)


def act(args: argparse.Namespace) -> int:
    return operate(args, profile=args.profile, now=args.now)
