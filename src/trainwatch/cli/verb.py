"""What a verb of the command line is. Each file of a section has a table ``VERBS`` of them, by name."""

import argparse
from collections.abc import Callable
from typing import Any, NamedTuple

Act = Callable[[argparse.Namespace], int]


class Verb(NamedTuple):
    """``help``: its line in ``trainwatch --help``; None hides it. ``example``: what is typed after it.

    ``act`` returns the exit code.
    """

    help: str | None
    description: str
    example: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    act: Act


def add_parts(parser: argparse.ArgumentParser, *, required: bool = True) -> Any:
    """Where ``add_part`` adds the parts of a verb (``checkpoints list``). ``args.part``: the one that was given."""
    parser.set_defaults(json=False)
    return parser.add_subparsers(title="parts", metavar="PART", dest="part", required=required)


def add_part(parts: Any, name: str, what: str, example: str, act: Act | None = None) -> argparse.ArgumentParser:
    """Add a part with ``--json``. ``example``: what is typed after trainwatch. ``act``: carried out by ``act_part``."""
    parser: argparse.ArgumentParser = parts.add_parser(
        name, help=what, description=what, epilog=f"example: trainwatch {example}"
    )
    parser.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="one JSON object")
    parser.set_defaults(act_part=act)
    return parser


def act_part(args: argparse.Namespace) -> int:
    """Carry out the part that was given."""
    return int(args.act_part(args))
