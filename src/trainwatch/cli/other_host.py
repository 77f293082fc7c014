"""``trainwatch --on HOST …``: the rest of the command line is for trainwatch on another machine."""

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from trainwatch import __version__
from trainwatch.core.app.errors import CliError, ExitCode

from .output import warn
from .parser import spelled_out

if TYPE_CHECKING:
    from trainwatch.core.model.remote.host import Host


def on_host(words: Sequence[str], command: Sequence[str] | None) -> int:
    """Run a verb there, or open the screen on its runs. ``command``: the words behind ``--``, if there are any.

    Returns the exit code of the verb there.
    """
    from trainwatch.core.app.hosts.known_hosts import host_named
    from trainwatch.core.app.hosts.run_there import detached, run_there

    name, rest = without_on(words)
    host = host_named(name)
    if command is None and (asked := screen_asked(rest)) is not None:
        from trainwatch.tui.ui.terminal import can_show_screen

        if can_show_screen():
            return _screen(host, asked)
    there = spelled_out(rest)
    all_words = there if command is None else [*there, "--", *command]
    terminal = sys.stdin.isatty() and sys.stdout.isatty() and sys.stderr.isatty()
    return run_there(host, detached(all_words), terminal=terminal, warn=warn)


def screen_asked(words: Sequence[str]) -> argparse.Namespace | None:
    """The options of the screen, if the words are nothing else."""
    parser = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    parser.add_argument("--run", dest="run_name")
    parser.add_argument("--read-only", action="store_true")
    try:
        asked, others = parser.parse_known_args(list(words))
    except argparse.ArgumentError:
        return None
    return None if others else asked


def _screen(host: "Host", asked: argparse.Namespace) -> int:
    """Connect, so that ssh can ask for what it needs while there is a terminal for it, and open the screen.

    Without a line what was seen last is shown, if something was.
    """
    from trainwatch.core.app.hosts.look import look
    from trainwatch.core.app.hosts.run_there import missing_there

    from .screen_app import app_on
    from .screen_end import show

    trouble = ""
    try:
        found = look(host, may_ask=True)
        if not found.version:
            trouble = missing_there(host)
        elif found.version != __version__:
            warn(f"{host.name} has trainwatch {found.version}, this machine {__version__}")
    except CliError as error:
        trouble = str(error)
    app = app_on(host, asked.run_name, read_only=asked.read_only, trouble=trouble)
    if trouble:
        warn(f"{trouble}; shown is what was known last")
    return show(app)


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
