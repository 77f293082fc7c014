"""``trainwatch adopt``: supervise a training that is already running."""

import argparse
import sys
from pathlib import Path

from trainwatch.core.app.errors import CliError, ExitCode

from ..launch_options import add_launch_options, overrides_of, supervise_run

HELP = "supervise a training that is already running, in tmux or anywhere"
DESCRIPTION = (
    "Without --session or --pid it takes the one training that runs: in a tmux pane, on a GPU, or with progress in its "
    "log; if several do, it lists them. It finds the trainer's command, working folder, environment, config and log, "
    "and supervises it from now on. The trainer itself is not touched. If it hangs or crashes, the same command is "
    "started again from the newest verified checkpoint. A command after -- replaces the one that was found: write "
    "{resume} into it where the checkpoint's path belongs."
)
EXAMPLE = "--session luca --output-dir outputs/luca --max-restarts 3"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "trainwatch adopt [--session TMUX | --pid PID] [--output-dir D] [options] [-- COMMAND …]"
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--session", metavar="TMUX", help="tmux session (or SESSION:WINDOW.PANE, or %%PANE) in which the training runs"
    )
    which.add_argument(
        "--pid", type=int, metavar="PID", help="process id of the trainer (of its launcher, if it has one)"
    )
    parser.add_argument("--log", metavar="F", help="the trainer's log (default: found from its output)")
    parser.add_argument("--socket", metavar="NAME", help="tmux server socket (tmux -L NAME; default: [tmux] socket)")
    add_launch_options(parser, adopted=True)


def act(args: argparse.Namespace) -> int:
    """Adopt and supervise it; the exit code is that of ``--headless``, as `trainwatch wait` has them."""
    from trainwatch.core.app.adopt.adopted_run import AdoptRequest, adopt
    from trainwatch.core.app.start.project_run import RunToStart

    if args.words:
        raise CliError(ExitCode.USAGE, f"unexpected: {args.words[0]}; write a command behind --")
    request = AdoptRequest(
        options=overrides_of(args),
        session=args.session or "",
        pid=args.pid,
        socket=args.socket,
        log=Path(args.log) if args.log else None,
        command=tuple(args.command_after_dashes or ()),
    )
    run, remarks = adopt(request)
    for remark in remarks:
        print(f"trainwatch: {remark}", file=sys.stderr, flush=True)
    return supervise_run(RunToStart(run), args, "adopted")
