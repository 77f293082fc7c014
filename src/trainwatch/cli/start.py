"""The verbs that start a training: run, adopt, init, queue."""

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainwatch.core.app.errors import CliError, ExitCode

from .launch_options import add_launch_options, add_settings, check_line, overrides_of, supervise_run
from .operation import confirm
from .output import outlive_reader, print_json, printable, printable_lines, warn
from .verb import Act, Verbs, act_part, add_part, add_parts, arg, flag, one_of, usage

if TYPE_CHECKING:
    from trainwatch.core.app.plan.launch_plan import LaunchPlan
    from trainwatch.core.app.start.start_choice import StartChoice, Wish
    from trainwatch.core.model.run import RunSpec
    from trainwatch.core.model.trial import Queue, QueueEntry


VERBS = Verbs()


@VERBS(
    "run",
    "launch a command and supervise it",
    "Launches COMMAND under a small runner that outlives this terminal, and supervises it. On a terminal the "
    "screen opens; without one, events are printed line by line. A run of the same command that was interrupted goes "
    "on; if there are checkpoints that a start from the beginning may overwrite, it is refused (exit code 4) unless "
    "--from or --fresh says what to do with them. Without COMMAND: the run of this folder's trainwatch.toml. "
    "With COMMAND that file is not used.",
    "--output-dir outputs -- python train.py --config cfg.yaml",
    usage("trainwatch run [options] -- COMMAND …"),
    arg("--profile", help="profile of training settings (see `trainwatch profiles`)"),
    one_of(
        arg(
            "--from",
            dest="checkpoint",
            metavar="CHECKPOINT",
            help='begin from a checkpoint: "newest" (in the output folder), a path, or a name in the output folder',
        ),
        flag("--fresh", "start from the beginning: the trainer may overwrite the checkpoints that are there"),
    ),
    arg("--yes", "-y", action="store_true", help="do not ask (--fresh)"),
    flag("--force", "start although a check fails (see `trainwatch check`)"),
    flag("--dry-run", "show what would be started, and start nothing"),
    add_settings,
    lambda parser: add_launch_options(parser, adopted=False),
)
def run_verb(args: argparse.Namespace) -> int:
    """Create the run and supervise it; the exit code is that of ``--headless``, as `trainwatch wait` has them."""
    from msgspec import structs

    from trainwatch.core.app.plan.resume_plan import rehearsed_words
    from trainwatch.core.app.plan.trainer_folders import not_used_for_a_command
    from trainwatch.core.app.preflight.checklist import told_at_resume
    from trainwatch.core.app.preflight.command_checks import command_warnings
    from trainwatch.core.app.start.project_run import create_run, plan_of_choice
    from trainwatch.core.app.start.start_choice import Wish, choose_start

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


def _plan(args: argparse.Namespace) -> "LaunchPlan":
    """The plan of the command, or without one of the run of this folder's trainwatch.toml."""
    from msgspec import structs

    from trainwatch.core.app.plan.launch_plan import plan_command, plan_project

    words = tuple(args.command_after_dashes or args.words)
    found = None if words else plan_project(args.name, structs.replace(overrides_of(args), name=None))
    plan = plan_command(words, overrides_of(args)) if found is None else found
    if not args.settings and args.lr is None:
        return plan
    from trainwatch.core.app.plan.launch_plan import plan_launch
    from trainwatch.core.app.plan.trainer_settings import asked_changes, without_a_place

    changes = asked_changes(plan, args.settings, args.lr)
    for doubt in without_a_place(plan, changes):
        warn(doubt)
    return plan_launch(structs.replace(plan.spec, changes=changes))


def _show(plan: "LaunchPlan", wish: "Wish", *, forced: bool, as_json: bool) -> int:
    """Print the launch that would be made, and what would refuse it."""
    import shlex

    from trainwatch.core.app.plan.launch_plan import plan_from
    from trainwatch.core.app.plan.resume_plan import rehearsed_words, second_argv
    from trainwatch.core.app.plan.trainer_settings import job_script
    from trainwatch.core.app.preflight.checklist import told_before_start
    from trainwatch.core.app.preflight.command_checks import command_warnings
    from trainwatch.core.app.start.project_run import plan_of_choice
    from trainwatch.core.views.length_words import resume_line, resume_object, second_start_line, second_start_object
    from trainwatch.core.views.words import by_itself

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
    from trainwatch.core.views.length_words import resume_object

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
    from trainwatch.core.app.plan.trainer_settings import job_script

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


@VERBS(
    "adopt",
    "supervise a training that is already running, in tmux or anywhere",
    "Without --session or --pid it takes the one training that runs: in a tmux pane, on a GPU, or with progress in its "
    "log; if several do, it lists them. It finds the trainer's command, working folder, environment, config and log, "
    "and supervises it from now on. The trainer itself is not touched. If it hangs or crashes, the same command is "
    "started again from the newest verified checkpoint. A command after -- replaces the one that was found: write "
    "{resume} into it where the checkpoint's path belongs.",
    "--session luca --output-dir outputs/luca --max-restarts 3",
    usage("trainwatch adopt [--session TMUX | --pid PID] [--output-dir D] [options] [-- COMMAND …]"),
    one_of(
        arg(
            "--session",
            metavar="TMUX",
            help="tmux session (or SESSION:WINDOW.PANE, or %%PANE) in which the training runs",
        ),
        arg("--pid", type=int, metavar="PID", help="process id of the trainer (of its launcher, if it has one)"),
    ),
    arg("--log", metavar="F", help="the trainer's log (default: found from its output)"),
    arg("--socket", metavar="NAME", help="tmux server socket (tmux -L NAME; default: [tmux] socket)"),
    lambda parser: add_launch_options(parser, adopted=True),
)
def adopt_verb(args: argparse.Namespace) -> int:
    """Adopt and supervise it; the exit code is that of ``--headless``, as `trainwatch wait` has them."""
    from trainwatch.core.app.adopt import AdoptRequest, adopt
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


@VERBS(
    "init",
    "write a commented trainwatch.toml",
    "Writes trainwatch.toml into this folder, with every key and what it means. The framework is detected from "
    "the command and the config. An existing file is never overwritten.",
    "--output-dir outputs -- python train.py --config cfg.yaml",
    arg("--name", help="the run's name (default: the folder's)"),
    arg("--preset", help="framework preset (default: detected)"),
    arg("--config", metavar="F", help="the trainer's own TOML or YAML"),
    arg("--output-dir", metavar="D", help="where the trainer saves (default: as its own flags or config say)"),
    arg("words", nargs=argparse.REMAINDER, metavar="COMMAND", help="the trainer's command line"),
)
def init_verb(args: argparse.Namespace) -> int:
    """2 if it exists or an option is wrong."""
    from trainwatch.core.app.plan.specs import write_project
    from trainwatch.core.views.length_words import resume_line

    path, preset, output_dir, resume = write_project(tuple(args.command_after_dashes or args.words), overrides_of(args))
    saves = f", output_dir {output_dir}" if output_dir else ""
    print(f"{path}: written (preset {preset}{saves}); check its values, then: trainwatch check, trainwatch")
    print(printable(resume_line(resume)))
    return ExitCode.DONE


def queue_arguments(parser: argparse.ArgumentParser) -> None:
    parts = add_parts(parser)
    add = parts.add_parser(
        "add",
        help="add a run at the end",
        description="add a run at the end",
        epilog="example: trainwatch queue add --gpu-memory 10GB -- python train.py",
    )
    add.set_defaults(act_part=act_add)
    add.usage = "trainwatch queue add [options] [-- COMMAND …]"
    add.add_argument("--gpu-memory", metavar="SIZE", help="GPU memory that it needs on each GPU: 10GB, 10000MiB")
    add.add_argument("--gpus", type=int, default=1, metavar="N", help="how many GPUs it gets (default 1; 0: none)")
    add.add_argument(
        "--beside", action="store_true", help="it may share a GPU with processes that the queue did not start"
    )
    add.add_argument("--profile", help="profile of training settings (see `trainwatch profiles`)")
    add.add_argument("--from", dest="checkpoint", metavar="CHECKPOINT", help='begin from a checkpoint, or "newest"')
    add.add_argument(
        "--fresh", action="store_true", help="start from the beginning, even over the checkpoints that are there"
    )
    add_launch_options(add, adopted=False, queued=True)
    _part(parts, "list", "what waits, runs and is over", "list --json", act_list)
    move = _part(parts, "move", "change the place of an entry that waits", "move 4 1", act_move)
    move.add_argument("entry", type=int, help="the number of the entry")
    move.add_argument("place", type=int, help="its new place among those that wait; 1 is the next one")
    remove = _part(parts, "remove", "remove an entry that waits or is over", "remove 4", act_remove)
    remove.add_argument("entry", type=int, help="the number of the entry")
    work = _part(parts, "work", "start queued runs until none is left (`add` does this)", "work", act_work)
    work.add_argument("--detach", action="store_true", help="in the background")
    enable = _part(parts, "enable", "go on with the queue after a reboot", "enable --print", act_enable)
    enable.add_argument("--print", action="store_true", help="show what would be written, and write nothing")
    start = parts.add_parser("start", description="Starts the run of one entry; the queue itself calls it.")
    start.add_argument("entry", type=int, help="the number of the entry")
    start.set_defaults(act_part=act_start)


VERBS(
    "queue",
    "start runs one after the other, when a GPU has room",
    "Runs that wait for GPUs of this machine. Each is started in its turn on the least loaded GPUs that have enough "
    "free memory, never beside a process that the queue did not start. The need is measured by `trainwatch trial` or "
    "stated; without either a run gets a GPU for itself alone. The queue outlives this terminal; after a reboot it "
    "goes on with `trainwatch queue work`, or by itself with `trainwatch queue enable`.",
    "add --gpu-memory 10GB -- python train.py --config cfg.yaml",
    queue_arguments,
)(act_part)


def _part(parts: Any, name: str, what: str, example: str, act: Act) -> argparse.ArgumentParser:
    return add_part(parts, name, what, f"queue {example}", act)


def act_add(args: argparse.Namespace) -> int:
    """Add the run, and start the process that starts queued runs."""
    import msgspec

    from trainwatch.core.app.plan.launch_plan import plan_command, plan_project
    from trainwatch.core.app.plan.trainer_folders import not_used_for_a_command
    from trainwatch.core.app.queue import add_entry, amount, ensure_worker, measured_need, new_entry
    from trainwatch.core.app.runs.known_runs import home

    if args.gpus < 0:
        raise CliError(ExitCode.USAGE, "--gpus: must not be negative")
    words = tuple(args.command_after_dashes or args.words)
    overrides = overrides_of(args)
    plan = (
        plan_command(words, overrides)
        if words
        else plan_project(args.name, msgspec.structs.replace(overrides, name=None))
    )
    if plan is None:
        raise CliError(ExitCode.USAGE, "give a command: trainwatch queue add -- COMMAND …")
    if plan.derived is None:
        raise CliError(ExitCode.USAGE, f"{plan.problem}; nothing was added")
    if words and (unused := not_used_for_a_command()) is not None:
        warn(unused)
    need, why = (amount(args.gpu_memory), "stated") if args.gpu_memory else measured_need(plan)
    entry, place = add_entry(
        lambda number, key: new_entry(
            number,
            key,
            plan.spec.name,
            words,
            options=msgspec.to_builtins(overrides),
            checkpoint=args.checkpoint,
            fresh=args.fresh,
            wants=args.gpus,
            need_bytes=need if args.gpus else None,
            need_why=why if args.gpus else "",
            beside=args.beside,
        ),
        os.environ,
    )
    pid = ensure_worker(home())
    if args.json:
        print_json({**_as_json(entry, place), "worker": pid})
        return ExitCode.DONE
    print(f"{entry.id}: {printable(entry.name)} is queued, place {place}; {_need(entry)}")
    print("look at it with `trainwatch queue list`; after a reboot: `trainwatch queue work` (`queue enable` does it)")
    return ExitCode.DONE


def act_list(args: argparse.Namespace) -> int:
    """0 also if nothing is queued."""
    from trainwatch.core.app.queue import queue_now
    from trainwatch.core.views.columns import QUEUE, text_rows

    queue, pid, alive = queue_now()
    if args.json:
        print_json({"queue": _rows(queue), "worker": {"pid": pid, "alive": alive}})
        return ExitCode.DONE
    if not queue.entries:
        print("the queue is empty: add a run with `trainwatch queue add -- COMMAND`")
    places = {entry.id: place for place, entry in enumerate(queue.waiting, 1)}
    for line in text_rows(QUEUE, [(entry, places.get(entry.id)) for entry in queue.entries]):
        print(printable(line))
    if queue.waiting and not alive:
        warn("nobody starts these runs now: `trainwatch queue work --detach` does")
    return ExitCode.DONE


def act_move(args: argparse.Namespace) -> int:
    """3 if there is no such entry, 2 if it does not wait."""
    from trainwatch.core.app.queue import move_entry

    place = move_entry(args.entry, args.place)
    if args.json:
        print_json({"id": args.entry, "place": place})
    else:
        print(f"{args.entry}: place {place}")
    return ExitCode.DONE


def act_remove(args: argparse.Namespace) -> int:
    """3 if there is no such entry, 2 if it is started."""
    from trainwatch.core.app.queue import remove_entry

    entry = remove_entry(args.entry)
    if args.json:
        print_json(_as_json(entry, None))
    else:
        print(f"{entry.id}: {printable(entry.name)} is removed")
    return ExitCode.DONE


def act_work(args: argparse.Namespace) -> int:
    """Start queued runs; 4 if another process does it already."""
    import logging
    import sys

    from trainwatch.core.app.queue import detach, work

    if args.detach and not detach():
        return ExitCode.DONE
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stderr)
    return work()


def act_enable(args: argparse.Namespace) -> int:
    """Write the unit that goes on with the queue after a reboot."""
    from trainwatch.core.app.enable import enabling_of_queue
    from trainwatch.core.app.runs.known_runs import home

    from .control import enable

    return enable(enabling_of_queue(home()), args)


def act_start(args: argparse.Namespace) -> int:
    """Start the run of one entry; prints what became of it as JSON."""
    from trainwatch.core.app.queue import queue_now, start_entry

    entry = queue_now()[0].find(args.entry)
    if entry is None or not entry.holds:
        raise CliError(ExitCode.NOT_FOUND, f"entry {args.entry} is not to be started; the queue starts its runs itself")
    print_json(start_entry(entry))
    return ExitCode.DONE


def _rows(queue: "Queue") -> list[dict[str, Any]]:
    places = {entry.id: place for place, entry in enumerate(queue.waiting, 1)}
    return [_as_json(entry, places.get(entry.id)) for entry in queue.entries]


def _as_json(entry: "QueueEntry", place: int | None) -> dict[str, Any]:
    """``state``: queued, starting, started, or how it ended. ``gpus``: those that it has."""
    return {
        "id": entry.id,
        "name": entry.name,
        "state": entry.ending if entry.state == "over" else entry.state,
        "over": entry.state == "over",
        "place": place,
        "run": entry.run,
        "gpus": list(entry.on),
        "gpus_wanted": entry.wants,
        "gpu_memory_bytes": entry.need_bytes,
        "gpu_memory_why": entry.need_why,
        "beside": entry.beside,
        "command": list(entry.command),
        "cwd": entry.cwd,
        "why": entry.why,
        "added_wall": entry.added_wall,
        "started_wall": entry.started_wall,
        "over_wall": entry.over_wall,
        "waits_s": round(time.time() - entry.added_wall, 1) if entry.state == "queued" else None,
    }


def _need(entry: "QueueEntry") -> str:
    from trainwatch.core.model.text import memory

    if entry.wants == 0:
        return "it needs no GPU"
    what = "a GPU" if entry.wants == 1 else f"{entry.wants} GPUs"
    if entry.need_bytes is None:
        return f"its need for GPU memory is {entry.need_why.replace('a GPU', what)}"
    return f"it needs {memory(entry.need_bytes)} of {what} ({entry.need_why})"
