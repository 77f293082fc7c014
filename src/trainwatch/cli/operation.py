"""What the verbs that control a run share: their options, the question on a terminal, and sending the command."""

import argparse
import sys
from typing import Any, Literal

from trainwatch.core.app.errors import CliError, ExitCode

from .launch_options import check_line
from .output import printable, warn
from .run_argument import run_of


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
