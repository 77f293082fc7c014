"""``trainwatch adopt``: look after a training that somebody started by hand."""

import argparse
import sys
from typing import Any

from .failure import CliError, ExitCode


def add(subparsers: Any) -> None:
    """Register the verb."""
    parser = subparsers.add_parser(
        "adopt",
        help="look after a training that is already running, in tmux or anywhere",
        description="Finds the trainer's command, working folder, environment, config and log, and looks after it from "
        "now on. The trainer itself is not touched; should it hang or die, the same command is started again from the "
        "newest good checkpoint. A command behind -- replaces the one that was found: write {resume} into it where the "
        "checkpoint's path belongs.",
        epilog="example: trainwatch adopt --session luca --output-dir outputs/luca --max-restarts 3",
        usage="trainwatch adopt (--session TMUX | --pid PID) --output-dir D [options] [-- COMMAND …]",
    )
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument(
        "--session", metavar="TMUX", help="tmux session (or SESSION:WINDOW.PANE, or %%PANE) in which the training runs"
    )
    which.add_argument(
        "--pid", type=int, metavar="PID", help="process id of the trainer (of its launcher, if it has one)"
    )
    parser.add_argument("--output-dir", metavar="D", required=True, help="where the trainer saves checkpoints")
    parser.add_argument("--log", metavar="F", help="the trainer's log (default: found from its output)")
    parser.add_argument("--name", help="the run's name (default: the session's, else from the command)")
    parser.add_argument("--preset", help="framework preset (default: recognised; see `trainwatch presets`)")
    parser.add_argument("--config", metavar="F", help="the trainer's own TOML or YAML (default: found in its command)")
    parser.add_argument("--interval", type=float, metavar="S", help="period of the health line, seconds")
    parser.add_argument("--max-restarts", type=int, metavar="N", help="restarts without progress in between")
    parser.add_argument("--socket", metavar="NAME", help="tmux server socket (tmux -L NAME; default: [tmux] socket)")
    parser.add_argument(
        "--json", action="store_true", help="JSON lines instead of text (with --headless or no terminal)"
    )
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--headless", dest="run_headless", action="store_true", help="no screen; report line by line")
    how.add_argument("--detach", action="store_true", help="start a supervisor and come back at once")
    parser.add_argument("words", nargs=argparse.REMAINDER, metavar="COMMAND", help=argparse.SUPPRESS)
    parser.set_defaults(act=act)


def act(args: argparse.Namespace) -> int:
    """Adopt and look after it; the exit code is that of ``--headless`` (0 finished, 1 given up)."""
    from trainwatch.core.act.adoption import AdoptionError

    from .adopted_run import adopt

    codes = {"missing": ExitCode.NOT_FOUND, "unclear": ExitCode.USAGE, "refused": ExitCode.FAILED}
    if args.words:
        raise CliError(ExitCode.USAGE, f"unexpected: {args.words[0]}; write a command behind --")
    try:
        run, said = adopt(args)
    except AdoptionError as error:
        raise CliError(codes[error.kind], str(error)) from None
    for sentence in said:
        print(f"trainwatch: {sentence}", file=sys.stderr, flush=True)
    return _look_after(run, args)


def _look_after(run: Any, args: argparse.Namespace) -> int:
    screen = _wants_screen(args)
    if not args.detach and not screen:
        from .headless import supervise

        return supervise(run, as_json=args.json)
    from .detached import start_detached

    try:
        pid = start_detached(run)
    except RuntimeError as error:
        raise CliError(ExitCode.FAILED, str(error)) from None
    if args.detach:
        print(f"{run.load_spec().name}: adopted, supervisor {pid}; look at it with `trainwatch status {run.id}`")
        return ExitCode.DONE
    from .verb_screen import open_screen

    return open_screen(run)


def _wants_screen(args: argparse.Namespace) -> bool:
    if args.run_headless or args.json or args.detach:
        return False
    from trainwatch.tui.terminal import can_show_screen

    return can_show_screen()
