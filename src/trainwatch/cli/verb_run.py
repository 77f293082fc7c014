"""``trainwatch run … -- COMMAND``: launch and supervise a command without a config file."""

import argparse
import os
import shlex
import sys
from typing import Any

from trainwatch.core.app.errors import CliError, ExitCode
from trainwatch.core.app.runs.known_runs import home

from .launch_options import add_launch_options, look_after

SECTION = "start"
HELP = "launch a command and supervise it"
DESCRIPTION = (
    "Launches COMMAND under a small runner that outlives this terminal, and supervises it. On a terminal the "
    "screen opens; without one, events are printed line by line."
)
EXAMPLE = "--output-dir outputs -- python train.py --config cfg.yaml"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "trainwatch run [options] -- COMMAND …"
    parser.add_argument("--profile", help="profile of training settings (see `trainwatch profiles`)")
    parser.add_argument("--dry-run", action="store_true", help="show what would be started, and start nothing")
    add_launch_options(parser, adopted=False)


def act(args: argparse.Namespace) -> int:
    """Create the run and look after it; the exit code is that of ``--headless`` (0 finished, 1 given up)."""
    from trainwatch.core.app.start.specs import spec_of_command
    from trainwatch.core.store.run_directory import RunDirectory

    command = tuple(args.command_after_dashes or args.words)
    spec = spec_of_command(command, args)
    if args.dry_run:
        return _show_plan(spec, as_json=args.json)
    from trainwatch.core.app.start.output_owner import require_own_output
    from trainwatch.core.app.start.startable import require_startable

    require_own_output(spec)
    require_startable(spec)
    return look_after(RunDirectory.create(home(), spec), args, "runs")


def _show_plan(spec: Any, *, as_json: bool) -> int:
    """What a launch would be."""
    from trainwatch.core.act.config.derive import DeriveError
    from trainwatch.core.act.launch.spawn import why_not
    from trainwatch.core.app.start.framework import plan_first_launch

    from .output import print_json, printable

    try:
        derived = plan_first_launch(spec)
    except DeriveError as error:
        raise CliError(ExitCode.USAGE, str(error)) from None
    problem = why_not(list(derived.argv), dict(derived.env), spec.cwd)
    if as_json:
        print_json(
            {
                "run": spec.name,
                "preset": spec.preset,
                "output_dir": spec.output_dir,
                "argv": list(derived.argv),
                "problem": problem,
                "changes": list(derived.changes),
            }
        )
        return ExitCode.DONE
    print(f"run      {printable(spec.name)} (preset {spec.preset}, profile {spec.settings.profiles.use or '–'})")
    print(f"command  {printable(shlex.join(derived.argv))}")
    if problem:
        print(f"problem  {problem}: the launch would be refused")
    print(f"cwd      {spec.cwd}")
    print(f"output   {spec.output_dir or 'not known: checkpoints are not watched (--output-dir D)'}")
    for change in derived.changes:
        print(f"change   {change.where} {change.key}: {_value(change.before)} -> {_value(change.after)}  {change.why}")
    added = {k: v for k, v in derived.env.items() if os.environ.get(k) != v}
    for key, value in sorted(added.items()):
        print(f"env      {key}={value}")
    print("nothing was started (--dry-run)")
    sys.stdout.flush()
    return ExitCode.DONE


def _value(value: Any) -> str:
    """A setting in words: a flag without a value is on."""
    if value is None:
        return "not set"
    return "on" if value == "" else str(value).lower() if isinstance(value, bool) else str(value)
