"""One call of trainwatch: the words of the command line, the verb that they name, and its exit code."""

import argparse
import errno
import os
import sys
from collections.abc import Sequence

from trainwatch.core.app.errors import CliError, ExitCode, says_what_cannot_be_read

from .output import discard, make_writable, warn, without_secrets
from .parser import build_parser, refuse_command, refuse_misplaced, refuse_unknown, spelled_out


def run_verb(words: Sequence[str]) -> int:
    """Run one verb. Returns its exit code (``core.app.errors.ExitCode``)."""
    make_writable()
    # Both of this call only: no process that it starts has them.
    host, script = os.environ.pop("TRAINWATCH_ON", ""), os.environ.pop("TRAINWATCH_SCRIPT", "")
    if host or script:
        import shutil

        from trainwatch.core.model.text import called_as

        if host:
            called_as("trainwatch", "--on", host)
        elif shutil.which("trainwatch") is None:  # it is not linked yet
            called_as(script)
    with without_secrets():
        return _run(list(words))


def _run(words: list[str]) -> int:
    command: list[str] | None = None
    if "--" in words:  # all words behind it are the trainer's
        at = words.index("--")
        words, command = words[:at], words[at + 1 :]
    try:
        if any(word == "--on" or word.startswith("--on=") for word in words):
            return on_host(words, command)
        words = spelled_out(words)
        parser = build_parser(words)
        args, unknown = parser.parse_known_args(words)
        refuse_misplaced(words, args.verb)
        named = getattr(args, "run", None) is not None  # `status --run X` is `status X`
        refuse_unknown([word for word in unknown if not (named and word == "--run")], parser, args.verb)
        refuse_command(args, command)
        args.command_after_dashes = command
        args.typed = words if command is None else [*words, "--", *command]
        code = int(args.act(args))
        sys.stdout.flush()  # a full disk fails here, where it can be reported
        return code
    except CliError as error:
        warn(str(error))
        return int(error.code)
    except KeyboardInterrupt:
        return int(ExitCode.INTERRUPTED)
    except BrokenPipeError:  # `trainwatch events | head`
        discard(sys.stdout)
        return int(ExitCode.DONE)
    except OSError as error:  # a full disk, a permission, a path
        if error.filename is None and error.errno != errno.ENOSPC:
            raise
        if error.filename is None:
            discard(sys.stdout)
        where = "the output" if error.filename is None else os.fsdecode(error.filename)
        print(f"trainwatch: {where}: {error.strerror}", file=sys.stderr)
        missing = isinstance(error, FileNotFoundError | NotADirectoryError)
        return int(ExitCode.NOT_FOUND if missing else ExitCode.FAILED)
    except Exception as error:
        if not says_what_cannot_be_read(error):
            raise
        warn(str(error))
        return int(ExitCode.FAILED)


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
        rest = spelled_out(rest)
        if rest[:1] != ["runs"]:
            raise CliError(ExitCode.USAGE, ALL_OF)
        parser = build_parser(rest)
        args, unknown = parser.parse_known_args([*rest, "--on", ALL])
        refuse_unknown(unknown, parser, args.verb)
        return int(args.act(args))
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
