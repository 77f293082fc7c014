"""What the verbs that control a run share: their options, the question on a terminal, and sending the command."""

import argparse
import sys
from typing import Any, Literal

from trainwatch.core.app.errors import CliError, ExitCode

from .launch_options import check_line
from .output import printable, warn
from .run_argument import add_run, run_of


def add_operation(parser: argparse.ArgumentParser, *, asks: bool) -> None:
    """Add RUN and --yes. Every verb takes --yes, so that scripts need not know which of them ask."""
    never = "" if asks else " (this verb never asks; accepted for scripts)"
    parser.add_argument("--yes", "-y", action="store_true", help=f"do not ask{never}")
    add_run(parser)


def add_force(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--force", action="store_true", help="although a check fails (see `trainwatch check`)")


def add_remedies(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose remedies for the next attempt."""
    parser.add_argument(
        "--with",
        dest="remedies",
        action="append",
        default=[],
        metavar="REMEDY",
        help="apply a remedy that was proposed (named in `trainwatch events`)",
    )
    parser.add_argument("--without-remedies", action="store_true", help="take back all remedies that were applied")


def operate(
    args: argparse.Namespace,
    *,
    verb: Literal["unpause"] | None = None,
    ask: str | None = None,
    starts_supervisor: bool = False,
    by: str = "command line",
    forced: bool | None = None,
    **values: Any,
) -> int:
    """Send the verb with ``values`` (fields of ``Command``); 0 if the supervisor accepted it.

    ``verb``: the supervisor's word for it, if it is another. ``ask``: the question on a terminal unless --yes, with
    ``{run}`` for the run's name. ``forced``: of a verb that launches: whether it does so although a check fails; None:
    it launches nothing.
    """
    from trainwatch.core.app.operate import (
        LAUNCHING,
        checkpoint_argument,
        profile_argument,
        remedies_argument,
        require_checked,
        send_command,
    )
    from trainwatch.core.app.start.start_choice import read_way_again
    from trainwatch.core.model.observation import Command

    run = run_of(args)
    values["checkpoint"] = checkpoint_argument(run, values.get("checkpoint"))
    values["profile"] = profile_argument(run, values.get("profile"))
    values["remedies"] = remedies_argument(tuple(values.get("remedies", ())))
    command = Command(t=0.0, verb=verb or args.verb, by=by, **values)
    if args.verb in LAUNCHING and (told := read_way_again(run, command)) is not None:
        warn(told)
    if ask is not None and not args.yes and sys.stdin.isatty():
        confirm(ask.format(run=run.load_spec().name))
    known = None if forced is None else require_checked(run, command, forced=forced)
    if known is not None:
        warn(check_line(known))
    print(send_command(run, command, starts_supervisor=starts_supervisor))
    return ExitCode.DONE


def confirm(question: str) -> None:
    """Ask on the terminal. Raises CliError unless the answer is yes."""
    print(f"{printable(question)} [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise CliError(ExitCode.FAILED, "cancelled")
