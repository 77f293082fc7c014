"""Options in front of a verb: ``trainwatch --run luca status`` is ``trainwatch status luca``."""

import argparse
from collections.abc import Sequence

from trainwatch.core.app.errors import CliError, ExitCode

from . import bare_command
from .parser import ALIASES, OneLineParser, build_parser, options_of_verb, spelled_out, verbs

RUN = "--run"


def moved_behind(words: Sequence[str]) -> tuple[list[str], str | None]:
    """The words with the options in front of the verb moved behind it, and the run that ``--run`` names there.

    Unchanged without a verb, and if there is something in front of it that is no option of the command without a verb.
    Raises CliError for an option that the verb does not take.
    """
    parser = OneLineParser(prog="trainwatch", add_help=False)
    bare_command.add_arguments(parser)
    for place, word in enumerate(words):
        if word not in verbs() and word not in ALIASES:
            continue
        try:
            given, others = parser.parse_known_args(words[:place])
        except CliError:  # the word is the value of an option: a run may be called `stop`
            continue
        if others:
            break
        return _behind(parser, given, spelled_out(words[place:]))
    return list(words), None


def _behind(parser: OneLineParser, given: argparse.Namespace, words: Sequence[str]) -> tuple[list[str], str | None]:
    verb, *rest = words
    taken = options_of_verb(build_parser(words), verb)
    moved: list[str] = []
    for option, value in _options(parser, given):
        if option == RUN:
            continue
        if option not in taken:
            raise _not_taken(verb, option)
        moved.append(option if value is True else f"{option}={value}")
    return [verb, *moved, *rest], given.run_name


def _options(parser: OneLineParser, given: argparse.Namespace) -> list[tuple[str, object]]:
    values = [(option, getattr(given, dest)) for option, dest in parser.long_options().items()]
    return [(option, value) for option, value in values if value is not None and value is not False]


def use_run(args: argparse.Namespace, name: str) -> None:
    """Make the run that ``--run`` names in front of the verb the run of the verb. Raises CliError (exit code 2)."""
    place = next((dest for dest in ("run", "run_name") if hasattr(args, dest)), None)
    if place is None:
        raise _not_taken(args.verb, RUN)
    behind = getattr(args, place)
    if behind not in {None, name}:
        raise CliError(
            ExitCode.USAGE,
            f'{RUN} {name} in front of {args.verb} names another run than "{behind}" behind it; name one of them',
        )
    setattr(args, place, name)


def _not_taken(verb: str, option: str) -> CliError:
    return CliError(ExitCode.USAGE, f"{verb} takes no {option}; see `trainwatch {verb} --help`")
