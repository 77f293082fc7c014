"""``trainwatch adopt``: supervise a training that is already running."""

import argparse
import sys

from trainwatch.core.app.errors import CliError, ExitCode

from .launch_options import add_launch_options, look_after

SECTION = "start"
HELP = "supervise a training that is already running, in tmux or anywhere"
DESCRIPTION = (
    "Finds the trainer's command, working folder, environment, config and log, and supervises it from now on. "
    "The trainer itself is not touched. If it hangs or crashes, the same command is started again from the "
    "newest verified checkpoint. A command behind -- replaces the one that was found: write {resume} into it "
    "where the checkpoint's path belongs."
)
EXAMPLE = "--session luca --output-dir outputs/luca --max-restarts 3"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "trainwatch adopt (--session TMUX | --pid PID) --output-dir D [options] [-- COMMAND …]"
    which = parser.add_mutually_exclusive_group(required=True)
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
    """Adopt and look after it; the exit code is that of ``--headless`` (0 finished, 1 given up)."""
    from trainwatch.core.act.adopt.adoption import AdoptionError
    from trainwatch.core.app.adopt.adopted_run import adopt

    codes = {"missing": ExitCode.NOT_FOUND, "unclear": ExitCode.USAGE, "refused": ExitCode.FAILED}
    if args.words:
        raise CliError(ExitCode.USAGE, f"unexpected: {args.words[0]}; write a command behind --")
    try:
        run, said = adopt(args)
    except AdoptionError as error:
        raise CliError(codes[error.kind], str(error)) from None
    for sentence in said:
        print(f"trainwatch: {sentence}", file=sys.stderr, flush=True)
    return look_after(run, args, "adopted")
