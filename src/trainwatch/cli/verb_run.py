"""``trainwatch run … -- COMMAND``: launch and look after a command without any config file."""

import argparse
import os
import shlex
import sys
from typing import Any

from .failure import CliError, ExitCode
from .known_runs import home


def add(subparsers: Any) -> None:
    """Register the verb."""
    parser = subparsers.add_parser(
        "run",
        help="launch a command and look after it",
        description="Launches COMMAND under a small runner that survives this terminal, and looks after it. On a "
        "terminal the screen opens; without one it reports line by line.",
        epilog="example: trainwatch run --output-dir outputs -- python train.py --config cfg.yaml",
        usage="trainwatch run [options] -- COMMAND …",
    )
    parser.add_argument("--name", help="the run's name (default: from the command)")
    parser.add_argument(
        "--preset", help="framework preset (default: recognised from the command; see `trainwatch presets`)"
    )
    parser.add_argument("--profile", help="profile of training settings (see `trainwatch profiles`)")
    parser.add_argument(
        "--config", metavar="F", help="the trainer's own TOML or YAML; each attempt gets a derived copy"
    )
    parser.add_argument("--output-dir", metavar="D", help="where the trainer saves checkpoints")
    parser.add_argument("--interval", type=float, metavar="S", help="period of the health line, seconds")
    parser.add_argument("--max-restarts", type=int, metavar="N", help="restarts without progress in between")
    parser.add_argument("--dry-run", action="store_true", help="show what would be started, and start nothing")
    parser.add_argument(
        "--json", action="store_true", help="JSON lines instead of text (with --headless or no terminal)"
    )
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--headless", dest="run_headless", action="store_true", help="no screen; report line by line")
    how.add_argument("--detach", action="store_true", help="start it and come back at once")
    parser.add_argument("words", nargs=argparse.REMAINDER, metavar="COMMAND", help="the trainer's command line")
    parser.set_defaults(act=act)


def act(args: argparse.Namespace) -> int:
    """Create the run and look after it; the exit code is that of ``--headless`` (0 finished, 1 given up)."""
    from trainwatch.core.store.run_directory import RunDirectory

    from .specs import spec_of_command

    command = tuple(args.command_after_dashes or args.words)
    spec = spec_of_command(command, args)
    if args.dry_run:
        return _show_plan(spec, as_json=args.json)
    from .startable import require_startable

    require_startable(spec)
    run = RunDirectory.create(home(), spec)
    if args.detach or _wants_screen(args):
        from .detached import start_detached

        try:
            pid = start_detached(run)
        except RuntimeError as error:
            raise CliError(ExitCode.FAILED, str(error)) from None
        if args.detach:
            print(f"{spec.name}: runs, supervisor {pid}; look at it with `trainwatch status {run.id}` or `trainwatch`")
            return ExitCode.DONE
        from .verb_screen import open_screen

        return open_screen(run)
    from .headless import supervise

    return supervise(run, as_json=args.json)


def _wants_screen(args: argparse.Namespace) -> bool:
    if args.run_headless or args.json:
        return False
    from trainwatch.tui.terminal import can_show_screen

    return can_show_screen()


def _show_plan(spec: Any, *, as_json: bool) -> int:
    """What a launch would be."""
    from .output import print_json
    from .wiring import plan_first_launch

    derived = plan_first_launch(spec)
    if as_json:
        print_json(
            {"run": spec.name, "preset": spec.preset, "argv": list(derived.argv), "changes": list(derived.changes)}
        )
        return ExitCode.DONE
    print(f"run      {spec.name} (preset {spec.preset}, profile {spec.settings.profiles.use or '–'})")
    print(f"command  {shlex.join(derived.argv)}")
    print(f"cwd      {spec.cwd}")
    for change in derived.changes:
        print(f"change   {change.where} {change.key}: {change.before!r} -> {change.after!r}  {change.why}")
    added = {k: v for k, v in derived.env.items() if os.environ.get(k) != v}
    for key, value in sorted(added.items()):
        print(f"env      {key}={value}")
    print("nothing was started (--dry-run)")
    sys.stdout.flush()
    return ExitCode.DONE
