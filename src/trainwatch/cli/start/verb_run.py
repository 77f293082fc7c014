"""``trainwatch run … -- COMMAND``: launch and supervise a command without a config file."""

import argparse
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from trainwatch.core.app.errors import CliError, ExitCode

from ..launch_checks import check_line
from ..launch_options import add_launch_options, add_settings, overrides_of, supervise_run
from ..operation import confirm
from ..output import print_json, printable, printable_lines, warn
from ..streams import outlive_reader

if TYPE_CHECKING:
    from trainwatch.core.app.plan.launch_plan import LaunchPlan
    from trainwatch.core.app.start.start_choice import StartChoice, Wish
    from trainwatch.core.model.run import RunSpec

ANSWER_S = 20.0
"""How long a start waits for an answer at the terminal."""

HELP = "launch a command and supervise it"
DESCRIPTION = (
    "Launches COMMAND under a small runner that outlives this terminal, and supervises it. On a terminal the "
    "screen opens; without one, events are printed line by line. A run of the same command that was interrupted goes "
    "on; if there are checkpoints that a start from the beginning may overwrite, it is refused (exit code 4) unless "
    "--from or --fresh says what to do with them. Without COMMAND: the run of this folder's trainwatch.toml. "
    "With COMMAND that file is not used."
)
EXAMPLE = "--output-dir outputs -- python train.py --config cfg.yaml"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "trainwatch run [options] -- COMMAND …"
    parser.add_argument("--profile", help="profile of training settings (see `trainwatch profiles`)")
    begin = parser.add_mutually_exclusive_group()
    begin.add_argument(
        "--from",
        dest="checkpoint",
        metavar="CHECKPOINT",
        help='begin from a checkpoint: "newest" (in the output folder), a path, or a name in the output folder',
    )
    begin.add_argument(
        "--fresh",
        action="store_true",
        help="start from the beginning: the trainer may overwrite the checkpoints that are there",
    )
    parser.add_argument("--yes", "-y", action="store_true", help="do not ask (--fresh, a way to resume that was found)")
    parser.add_argument("--force", action="store_true", help="start although a check fails (see `trainwatch check`)")
    parser.add_argument("--dry-run", action="store_true", help="show what would be started, and start nothing")
    add_settings(parser)
    add_launch_options(parser, adopted=False)


def act(args: argparse.Namespace) -> int:
    """Create the run and supervise it; the exit code is that of ``--headless``, as `trainwatch wait` has them."""
    from msgspec import structs

    from trainwatch.core.app.plan.rehearsed import rehearsed_words
    from trainwatch.core.app.plan.unused_file import not_used_for_a_command
    from trainwatch.core.app.preflight.checklist import told_at_resume
    from trainwatch.core.app.preflight.handover_check import command_warnings
    from trainwatch.core.app.start.project_run import create_run, plan_of_choice
    from trainwatch.core.app.start.start_choice import Wish, choose_start
    from trainwatch.tui.ui.terminal import in_background

    try:
        plan = _plan(args)
    except CliError as error:
        if args.dry_run and args.json:
            _print_refused(args, str(error))
        raise
    unused = not_used_for_a_command() if plan.spec.project is None else None
    wish = Wish(checkpoint=args.checkpoint, fresh=args.fresh, given=_given(args.typed))
    if args.dry_run:
        if unused is not None:
            warn(unused)
        return _show(plan, wish, forced=args.force, as_json=args.json)
    outlive_reader()
    for warning in command_warnings(plan.spec):
        warn(warning)
    if (rehearsed := rehearsed_words(plan.spec)) is not None:
        warn(rehearsed)
    choice = choose_start(plan, wish)
    if args.fresh and choice.said:
        warn(choice.said)
        if not args.yes:
            if not sys.stdin.isatty():
                raise CliError(
                    ExitCode.OWNED, "nothing was started: there is no terminal to ask on; add --yes if that is meant"
                )
            confirm("begin anew all the same?")
        choice = structs.replace(choice, said="")
    if choice.known is None and not args.yes and sys.stdin.isatty() and not in_background():
        _confirm_resume(plan.spec)
    ready = create_run(plan, choice, forced=args.force)
    if unused is not None:  # a refused start has one line
        warn(unused)
    if choice.known is not None and not choice.watches and (known := told_at_resume(plan_of_choice(plan, choice))):
        warn(check_line(known))
    return supervise_run(ready, args, "runs")


def _given(typed: Sequence[str]) -> tuple[str, ...]:
    """What was typed behind the verb, without the words that say from where to begin."""
    words = iter(typed)
    left: list[str] = []
    for word in words:
        if word == "--":
            left += [word, *words]
        elif word == "--from":
            next(words, None)
        elif word not in {"--fresh", "--dry-run", "--json"} and not word.startswith("--from="):
            left.append(word)
    return tuple(left[1:])


def _confirm_resume(spec: "RunSpec") -> None:
    """Ask once whether the way to resume that was found in the source is right. Raises CliError if it is not.

    No answer is yes: a start must not wait for a person who has left, and the first resume is watched in any case.
    """
    import select

    from trainwatch.core.app.plan.confirmed_resume import must_be_confirmed, remember_confirmed
    from trainwatch.core.views.resume_words import resume_line

    if not must_be_confirmed(spec):
        return
    asked = f"is that right? [Y/n; yes in {ANSWER_S:.0f} s]"
    print(f"{printable(resume_line(spec.resume_way))}: {asked} ", end="", flush=True)
    answered = select.select([sys.stdin], [], [], ANSWER_S)[0]
    answer = sys.stdin.readline().strip().lower() if answered else ""
    if not answered:
        print(f"no answer within {ANSWER_S:.0f} s: taken", flush=True)
    if answer in {"n", "no"}:
        raise CliError(
            ExitCode.USAGE,
            "nothing was started: write {resume} behind the script's own option for a checkpoint, "
            "if it has another one",
        )
    if answered:
        remember_confirmed(spec)


def _plan(args: argparse.Namespace) -> "LaunchPlan":
    """The plan of the command, or without one of the run of this folder's trainwatch.toml."""
    from msgspec import structs

    from trainwatch.core.app.plan.project_plan import plan_command, plan_project

    words = tuple(args.command_after_dashes or args.words)
    found = None if words else plan_project(args.name, structs.replace(overrides_of(args), name=None))
    plan = plan_command(words, overrides_of(args)) if found is None else found
    if not args.settings and args.lr is None:
        return plan
    from trainwatch.core.app.plan.asked_settings import asked_changes, without_a_place
    from trainwatch.core.app.plan.launch_plan import plan_launch

    changes = asked_changes(plan, args.settings, args.lr)
    for doubt in without_a_place(plan, changes):
        warn(doubt)
    return plan_launch(structs.replace(plan.spec, changes=changes))


def _show(plan: "LaunchPlan", wish: "Wish", *, forced: bool, as_json: bool) -> int:
    """Print the launch that would be made, and what would refuse it."""
    import shlex

    from trainwatch.core.app.plan.job_script import job_script
    from trainwatch.core.app.plan.launch_plan import plan_from
    from trainwatch.core.app.plan.rehearsed import rehearsed_words
    from trainwatch.core.app.plan.resume_plan import second_argv
    from trainwatch.core.app.preflight.checklist import told_before_start
    from trainwatch.core.app.preflight.handover_check import command_warnings
    from trainwatch.core.app.start.project_run import plan_of_choice
    from trainwatch.core.views.act_words import by_itself
    from trainwatch.core.views.resume_words import (
        resume_line,
        resume_object,
        second_start_line,
        second_start_object,
    )

    spec, derived = plan.spec, plan.derived
    if derived is None and not as_json:
        raise CliError(ExitCode.USAGE, plan.problem or "the launch cannot be derived")
    choice, problem = _choice(plan, wish, forced=forced)
    start = choice.said or "a new run from the beginning"
    if not problem and choice.known is None and choice.checkpoint is not None:
        plan = plan_from(plan, choice.checkpoint)
        derived = plan.derived or derived
    checks = told_before_start(plan if problem else plan_of_choice(plan, choice))
    if as_json:
        print_json(
            {
                "run": spec.name,
                "preset": spec.preset,
                "preset_why": plan.preset.told(spec.preset_why),
                "output_dir": spec.output_dir,
                "output_why": _output_why(spec),
                "argv": list(plan.command_shown),
                "problem": problem or None,
                "warnings": command_warnings(spec),
                "checks": checks,
                "start": None if problem else start,
                "goes_on_with": None if choice.known is None else choice.known.id,
                "checkpoint": choice.checkpoint or (None if choice.first is None else choice.first.checkpoint),
                "changes": [] if derived is None else list(derived.changes),
                "rehearsed": rehearsed_words(spec),
                "resume": resume_object(spec.resume_way),
                "second_start": second_start_object(spec.second_start, second_argv(spec, plan.preset)),
                "engine": spec.engine,
                "job_script": job_script(plan),
            }
        )
        return ExitCode.DONE if derived is not None else ExitCode.USAGE
    assert derived is not None
    print(f"run      {printable(spec.name)} (profile {spec.settings.profiles.use or '–'})")
    print(f"preset   {spec.preset}: {printable(plan.preset.told(spec.preset_why))}")
    print(f"command  {printable(shlex.join(plan.command_shown))}")
    if problem:
        print(f"problem  {printable(problem)}: the launch would be refused")
    else:
        print(f"start    {printable(start)}")
    for warning in command_warnings(spec):
        print(f"warning  {printable(warning)}")
    for check in checks:
        print(f"check    {check_line(check)}")
    print(f"cwd      {spec.cwd}")
    print(f"output   {printable(spec.output_dir or spec.output_hint or 'not known')}: {printable(_output_why(spec))}")
    print(f"night    {printable(rehearsed_words(spec) or 'not rehearsed: `trainwatch rehearse` before the night')}")
    for change in derived.changes:
        print(f"change   {change.where} {change.key}: {_value(change.before)} -> {_value(change.after)}  {change.why}")
    added = {k: v for k, v in derived.env.items() if os.environ.get(k) != v}
    for key, value in sorted(added.items()):
        print(f"env      {key}={value}")
    print(printable(resume_line(spec.resume_way)))
    if (restart := second_start_line(spec.second_start)) is not None:
        print(printable(restart))
    print(f"then     {by_itself(spec.settings)}")
    _print_job(plan)
    print("nothing was started (--dry-run)" + ("; it would be refused: see *problem* above" if problem else ""))
    sys.stdout.flush()
    return ExitCode.DONE


def _print_refused(args: argparse.Namespace, problem: str) -> None:
    """The object of a dry run for a command of which no launch can be planned."""
    from trainwatch.core.views.resume_words import resume_object

    unknown = ("preset", "preset_why", "output_dir", "output_why", "start", "goes_on_with", "checkpoint", "rehearsed")
    empty: dict[str, Any] = {"warnings": [], "checks": [], "changes": [], "engine": None, "job_script": None}
    argv = list(args.command_after_dashes or args.words)
    told = {"run": args.name, "argv": argv, "problem": problem, "resume": resume_object(None)}
    print_json({**dict.fromkeys(unknown), **empty, **told})


def _choice(plan: "LaunchPlan", wish: "Wish", *, forced: bool) -> "tuple[StartChoice, str]":
    """What a start would do, and why it would be refused ("": it would not be)."""
    from trainwatch.core.app.preflight.checklist import why_not_start
    from trainwatch.core.app.start.project_run import plan_of_choice
    from trainwatch.core.app.start.start_choice import StartChoice, choose_start

    try:
        choice = choose_start(plan, wish)
        if choice.watches:
            return choice, ""
        known, waits = choice.known is not None, choice.waits_for_room
        found = why_not_start(plan_of_choice(plan, choice), known=known, forced=forced, waits_for_room=waits)
    except CliError as error:
        return StartChoice(), str(error)
    return choice, "" if found is None else found.sentence


def _print_job(plan: "LaunchPlan") -> None:
    from trainwatch.core.app.plan.job_script import job_script

    if script := job_script(plan):
        print(f"engine   slurm: each attempt is a job; the batch script of the first one:\n{printable_lines(script)}")


def _output_why(spec: "RunSpec") -> str:
    """How the output folder is known, or when it will be."""
    if spec.output_dir is not None:
        return spec.output_why or "told"
    if spec.output_hint is not None:
        return "a new folder below it in each launch; it is found when the trainer saves"
    return "it is found when the trainer saves (--output-dir D)"


def _value(value: Any) -> str:
    """A setting as text; a flag without a value is on."""
    if value is None:
        return "not set"
    return "on" if value == "" else str(value).lower() if isinstance(value, bool) else str(value)
