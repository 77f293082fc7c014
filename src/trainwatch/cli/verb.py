"""What a verb of the command line is, and what verbs share: the run that is meant, the question on a terminal.

Each file of a section has a table ``VERBS`` of them, by name. ``@VERBS(name, help, description, example, *arguments)``
stands before the function that carries the verb out; ``queue add`` is the part ``add`` of the verb ``queue``.
"""

import argparse
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from trainwatch.core.app.errors import CliError, ExitCode
from trainwatch.core.model.text import typed

from .output import check_line, printable, warn

if TYPE_CHECKING:
    from trainwatch.core.app.runs.known_runs import RunDirectory


Act = Callable[[argparse.Namespace], int]
Argument = Callable[[argparse.ArgumentParser], object]
"""Adds an argument of a verb to its parser."""


class Verb(NamedTuple):
    """``help``: its line in ``trainwatch help all``; None hides it. ``example``: what is typed after it.

    ``act`` returns the exit code; None: one of the parts has to be named. ``parts``: with their names.
    """

    help: str | None
    description: str
    example: str
    arguments: tuple[Argument, ...]
    act: Act | None
    parts: "tuple[tuple[str, Verb], ...]" = ()


class Verbs(dict[str, Verb]):
    """The verbs of one file."""

    def __call__(
        self, name: str, help_: str | None, description: str, example: str, *arguments: Argument
    ) -> Callable[[Act], Act]:
        """For the function that carries the verb out. The rest: see ``Verb``."""

        def add(act: Act) -> Act:
            self.add(name, Verb(help_, description, example, arguments, act))
            return act

        return add

    def add(self, name: str, verb: Verb) -> None:
        """``name``: of the verb, or of a verb that was added before and of its part."""
        of, _, part = name.partition(" ")
        self[of] = self[of]._replace(parts=(*self[of].parts, (part, verb))) if part else verb


def arg(*names: str, **options: Any) -> Argument:
    return lambda parser: parser.add_argument(*names, **options)


def flag(name: str, help_: str) -> Argument:
    return arg(name, action="store_true", help=help_)


def usage(words: str) -> Argument:
    """The line of its help. Only a verb that has a place for a COMMAND there takes one."""

    def add(parser: argparse.ArgumentParser) -> None:
        parser.usage = words
        parser.set_defaults(takes_command="COMMAND" in words)

    return add


def one_of(*arguments: Argument, required: bool = False) -> Argument:
    """Arguments of which only one can be given."""

    def add(parser: argparse.ArgumentParser) -> None:
        group: Any = parser.add_mutually_exclusive_group(required=required)
        for argument in arguments:
            argument(group)

    return add


JSON = flag("--json", "one JSON object")
PART_JSON = arg("--json", action="store_true", default=argparse.SUPPRESS, help="one JSON object")
"""Of a part of a verb: the option may also stand before it."""
YES = arg("--yes", "-y", action="store_true", help="do not ask")


BY = arg("--by", metavar="WHO", default="command line", help="who orders or asks, for the journal")
ASK = flag("--ask", "a program asks: nothing is done before a person does it, or says no (screen, status, notices)")


def command_words(help_: str = "the trainer's command line") -> Argument:
    """All that follows: the words of a command."""
    return arg("words", nargs=argparse.REMAINDER, metavar="COMMAND", help=help_)


RUN = arg(
    "run",
    nargs="?",
    help="name or id of a run (default: the one of this folder or its trainwatch.toml, else the only one)",
)


def run_of(args: argparse.Namespace) -> "RunDirectory":
    """The run that is meant. Ends the verb with exit code 3 if there is none, 2 if several match.

    If others have its name, which one it is is said.
    """
    from trainwatch.core.app.runs.known_runs import find_run, namesakes

    run = find_run(args.run)
    if args.run is not None and args.run != run.id and (others := namesakes(run)):
        warn(f"this is run {run.id} in {run.load_spec().cwd}; other runs of that name: {', '.join(others)}")
    return run


def run_to_read(args: argparse.Namespace, *, anywhere: bool = True) -> "RunDirectory":
    """The same for verbs that only read: without RUN, of several runs the newest live one, else the newest.

    ``anywhere``: it may be one of another folder, if this one has none; not where its exit code decides something.
    """
    from trainwatch.core.app.runs.known_runs import find_run

    return find_run(args.run, warn, anywhere=anywhere)


def operate(
    args: argparse.Namespace,
    *,
    verb: Literal["unpause"] | None = None,
    ask: str | None = None,
    by: str | None = None,
    forced: bool | None = None,
    **values: Any,
) -> int:
    """Send the verb with ``values`` (fields of ``Command``); 0 if the supervisor accepted it.

    ``verb``: the supervisor's word for it, if it is another. ``ask``: the question on a terminal unless --yes, with
    ``{run}`` for the run's name; with --ask the supervisor asks, and nothing is done. ``forced``: of a verb that
    launches, with a new supervisor if there is none: whether it does so although a check fails; None: it launches
    nothing.
    """
    from trainwatch.core.app.operate import (
        LAUNCHING,
        checkpoint_argument,
        profile_argument,
        require_checked,
        send_command,
    )
    from trainwatch.core.app.start.start_choice import read_way_again
    from trainwatch.core.model.observation import Command

    run = run_of(args)
    values["checkpoint"] = checkpoint_argument(run, values.get("checkpoint"))
    values["profile"] = profile_argument(run, values.get("profile"))
    values["remedies"] = tuple(values.get("remedies", ()))
    by = by or printable(args.by)[:60]
    command = Command(t=0.0, verb=verb or args.verb, by=by, **values)
    if getattr(args, "ask", False):
        if command != Command(t=0.0, verb=args.verb, by=by):
            raise CliError(ExitCode.USAGE, f"--ask asks for a plain {args.verb}: leave the other options out")
        send_command(run, Command(t=0.0, verb="ask", asked=args.verb, by=by), starts_supervisor=False)
        does, refuses = (typed(word, run.id) for word in (args.verb, "ack"))
        print(f"a person is asked, and nothing is done before the answer: `{does}` does it, `{refuses}` says no")
        return ExitCode.DONE
    if args.verb in LAUNCHING and (told := read_way_again(run, command)) is not None:
        warn(told)
    if ask is not None and not args.yes and sys.stdin.isatty():
        confirm(ask.format(run=run.load_spec().name))
    known = None if forced is None else require_checked(run, command, forced=forced)
    if known is not None:
        warn(check_line(known))
    print(send_command(run, command, starts_supervisor=forced is not None))
    return ExitCode.DONE


def confirm(question: str) -> None:
    """Ask on the terminal. Raises CliError unless the answer is yes."""
    print(f"{printable(question)} [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise CliError(ExitCode.FAILED, "cancelled")
