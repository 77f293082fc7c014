"""What a verb of the command line is. Each file of a section has a table ``VERBS`` of them, by name.

``@VERBS(name, help, description, example, *arguments)`` stands before the function that carries the verb out.
"""

import argparse
from collections.abc import Callable
from typing import Any, NamedTuple

Act = Callable[[argparse.Namespace], int]
Argument = Callable[[argparse.ArgumentParser], object]
"""Adds an argument of a verb to its parser."""


class Verb(NamedTuple):
    """``help``: its line in ``trainwatch --help``; None hides it. ``example``: what is typed after it.

    ``act`` returns the exit code.
    """

    help: str | None
    description: str
    example: str
    arguments: tuple[Argument, ...]
    act: Act


class Verbs(dict[str, Verb]):
    """The verbs of one file."""

    def __call__(
        self, name: str, help_: str | None, description: str, example: str, *arguments: Argument
    ) -> Callable[[Act], Act]:
        """For the function that carries the verb out. The rest: see ``Verb``."""

        def add(act: Act) -> Act:
            self[name] = Verb(help_, description, example, arguments, act)
            return act

        return add


def arg(*names: str, **options: Any) -> Argument:
    """As ``add_argument`` of argparse."""
    return lambda parser: parser.add_argument(*names, **options)


def flag(name: str, help_: str) -> Argument:
    return arg(name, action="store_true", help=help_)


def usage(words: str) -> Argument:
    return lambda parser: setattr(parser, "usage", words)


def one_of(*arguments: Argument, required: bool = False) -> Argument:
    """Arguments of which only one can be given."""

    def add(parser: argparse.ArgumentParser) -> None:
        group: Any = parser.add_mutually_exclusive_group(required=required)
        for argument in arguments:
            argument(group)

    return add


JSON = flag("--json", "one JSON object")


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
