"""``trainwatch run … -- COMMAND``: launch and supervise a command without a config file."""

import argparse
import os
import shlex
import sys
from typing import TYPE_CHECKING, Any

from trainwatch.core.app.errors import CliError, ExitCode

from .launch_options import add_launch_options, overrides_of, supervise_run
from .output import print_json, printable

if TYPE_CHECKING:
    from trainwatch.core.app.plan.launch_plan import LaunchPlan

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
    """Create the run and supervise it; the exit code is that of ``--headless`` (0 finished, 1 given up)."""
    from trainwatch.core.app.plan.project_plan import plan_command
    from trainwatch.core.app.start.project_run import create_run

    plan = plan_command(tuple(args.command_after_dashes or args.words), overrides_of(args))
    if args.dry_run:
        return _show(plan, as_json=args.json)
    return supervise_run(create_run(plan), args, "runs")


def _show(plan: "LaunchPlan", *, as_json: bool) -> int:
    """Print the launch that would be made."""
    from trainwatch.core.app.preflight.checklist import why_not_start
    from trainwatch.core.views.act_words import by_itself

    spec, derived = plan.spec, plan.derived
    obstacle = why_not_start(plan)
    if derived is None:
        raise CliError(ExitCode.USAGE, plan.problem or "the launch cannot be derived")
    problem = None if obstacle is None else obstacle.sentence
    if as_json:
        print_json(
            {
                "run": spec.name,
                "preset": spec.preset,
                "output_dir": spec.output_dir,
                "argv": list(plan.command_shown),
                "problem": problem,
                "changes": list(derived.changes),
            }
        )
        return ExitCode.DONE
    print(f"run      {printable(spec.name)} (preset {spec.preset}, profile {spec.settings.profiles.use or '–'})")
    print(f"command  {printable(shlex.join(plan.command_shown))}")
    if problem:
        print(f"problem  {problem}: the launch would be refused")
    print(f"cwd      {spec.cwd}")
    print(f"output   {spec.output_dir or 'not known: checkpoints are not watched (--output-dir D)'}")
    for change in derived.changes:
        print(f"change   {change.where} {change.key}: {_value(change.before)} -> {_value(change.after)}  {change.why}")
    added = {k: v for k, v in derived.env.items() if os.environ.get(k) != v}
    for key, value in sorted(added.items()):
        print(f"env      {key}={value}")
    print(f"then     {by_itself(spec.settings)}")
    print("nothing was started (--dry-run)")
    sys.stdout.flush()
    return ExitCode.DONE


def _value(value: Any) -> str:
    """A setting as text; a flag without a value is on."""
    if value is None:
        return "not set"
    return "on" if value == "" else str(value).lower() if isinstance(value, bool) else str(value)
