"""``trainwatch resume [RUN]``: continue after a pause, a stop or a give-up, also with another command."""

import argparse

from trainwatch.core.app.errors import CliError, ExitCode

from ..launch_options import add_settings
from ..operation import add_force, add_operation, add_remedies, operate
from ..output import warn
from ..run_argument import run_of

HELP = "continue after a pause, a stop, an interruption or a give-up"
DESCRIPTION = (
    "Continues a run after a stop, an interruption or a give-up, from its newest verified checkpoint. A run that is "
    "paused, or that a signal stopped, goes on where it is. A command after -- replaces that of the run: resume RUN -- "
    "NEW COMMAND."
)
EXAMPLE = "--from outputs/name-000004.safetensors"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "trainwatch resume [options] [RUN] [-- NEW COMMAND …]"
    begin = parser.add_mutually_exclusive_group()
    begin.add_argument("--fresh", action="store_true", help="from the beginning, whatever checkpoints there are")
    begin.add_argument(
        "--from",
        dest="checkpoint",
        metavar="CHECKPOINT",
        help='file or directory to resume from: a path, a name in the output folder, or "newest" there',
    )
    begin.add_argument("--paused", action="store_true", help="only if it is paused; starts no attempt (also: unpause)")
    parser.add_argument(
        "--incident", type=int, metavar="N", help="only if incident N still waits for an answer ([restart] act)"
    )
    add_settings(parser)
    add_remedies(parser)
    add_force(parser)
    add_operation(parser, asks=False)


def act(args: argparse.Namespace) -> int:
    by = "command line"
    if args.paused:
        if args.command_after_dashes or args.settings or args.remedies or args.lr is not None:
            raise CliError(ExitCode.USAGE, "--paused only ends a pause: nothing else can be asked for with it")
        return operate(args, verb="unpause")
    if args.command_after_dashes:
        from trainwatch.core.app.operate import checkpoint_argument
        from trainwatch.core.app.start.new_command import checkpoint_after, give_command

        run = run_of(args)
        checkpoint_argument(run, args.checkpoint)  # a wrong one changes nothing
        warn(give_command(run, args.command_after_dashes, forced=args.force, tell=warn))
        if not args.fresh and args.checkpoint is None:
            args.checkpoint = checkpoint_after(run)
        by = "command line, with a new command"
    if args.settings or args.lr is not None:
        from trainwatch.core.app.operate import checkpoint_argument
        from trainwatch.core.app.start.new_command import checkpoint_after, give_settings

        run = run_of(args)
        checkpoint_argument(run, args.checkpoint)  # a wrong one changes nothing
        changed = give_settings(run, args.settings, args.lr, tell=warn)
        warn(f"run {run.id} has from now on: {changed}")
        if not args.fresh and args.checkpoint is None:
            args.checkpoint = checkpoint_after(run)
        by = f"{by}, with {changed}"
    return operate(
        args,
        starts_supervisor=True,
        forced=args.force,
        by=by,
        fresh=args.fresh,
        incident=args.incident,
        checkpoint=args.checkpoint,
        remedies=tuple(args.remedies),
        without_remedies=args.without_remedies,
    )
