"""``trainwatch --on HOST …``: the rest of the command line is for trainwatch on another machine."""

import sys
from collections.abc import Sequence

from trainwatch.core.app.errors import CliError, ExitCode

from .output import warn
from .parser import spelled_out


def on_host(words: Sequence[str], command: Sequence[str] | None) -> int:
    """Run a verb there, or open the screen on its runs. ``command``: the words behind ``--``, if there are any.

    Returns the exit code of the verb there.
    """
    from trainwatch.core.app.hosts.known_hosts import host_named
    from trainwatch.core.app.hosts.run_there import detached, run_there

    name, rest = without_on(words)
    host = host_named(name)
    there = spelled_out(rest)
    all_words = there if command is None else [*there, "--", *command]
    terminal = sys.stdin.isatty() and sys.stdout.isatty() and sys.stderr.isatty()
    return run_there(host, detached(all_words), terminal=terminal, warn=warn)


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
