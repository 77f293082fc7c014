"""``trainwatch --on HOST …``: the rest of the command line is for trainwatch on another machine."""

import argparse
import sys
from collections.abc import Sequence

from trainwatch.core.app.errors import CliError, ExitCode

from .output import warn
from .parser import build_parser, refuse_unknown, spelled_out

ALL = "all"
"""After ``--on``: this machine and all others."""
ALL_OF = "--on all is for the list of runs: trainwatch runs --on all; other verbs, and the screen, take one host"


def on_host(words: Sequence[str], command: Sequence[str] | None) -> int:
    """Run a verb there, or show the screen of that machine. ``command``: the words behind ``--``, if there are any.

    Returns the exit code of the verb there.
    """
    from trainwatch.core.app.hosts.run_there import detached, host_named, needs_terminal, run_there, show_there

    name, rest = without_on(words)
    if name == ALL:
        return _list_all(spelled_out(rest))
    host = host_named(name)
    if command is None and asks_screen(rest):
        from trainwatch.tui.ui.terminal import can_show_screen

        if can_show_screen():
            return show_there(host, rest)
    there = spelled_out(rest)
    all_words = detached(there if command is None else [*there, "--", *command])
    terminal = sys.stdin.isatty() and sys.stdout.isatty() and sys.stderr.isatty()
    if terminal and needs_terminal(all_words):
        return show_there(host, all_words)
    return run_there(host, all_words, may_ask=terminal, warn=warn)


def _list_all(words: Sequence[str]) -> int:
    """``runs`` of this machine and of all others."""
    if words[:1] != ["runs"]:
        raise CliError(ExitCode.USAGE, ALL_OF)
    parser = build_parser(words)
    args, unknown = parser.parse_known_args([*words, "--on", ALL])
    refuse_unknown(unknown, parser, args.verb)
    return int(args.act(args))


def asks_screen(words: Sequence[str]) -> bool:
    """Whether the words are options of the screen and nothing else."""
    parser = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    parser.add_argument("--run")
    parser.add_argument("--read-only", action="store_true")
    try:
        return not parser.parse_known_args(list(words))[1]
    except argparse.ArgumentError:
        return False


def without_on(words: Sequence[str]) -> tuple[str, list[str]]:
    """The host that is named, and the other words. Raises CliError if there is not exactly one."""
    names: list[str] = []
    rest: list[str] = []
    left = iter(words)
    for word in left:
        if word == "--on":
            names.append(next(left, ""))
        elif word.startswith("--on="):
            names.append(word.removeprefix("--on="))
        else:
            rest.append(word)
    if len(names) != 1 or not names[0] or names[0].startswith("-"):
        raise CliError(ExitCode.USAGE, "--on takes the name of one host: trainwatch --on box1 status")
    return names[0], rest
