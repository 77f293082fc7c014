"""The verbs that start a training: run, adopt, init, demo, drill; and the options and checks that starts share."""

import argparse
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainwatch.core.app.errors import CliError, ExitCode
from trainwatch.core.model.text import typed

from .output import check_line, outlive_reader, print_json, printable, put, warn
from .verb import JSON, Argument, Verbs, arg, command_words, confirm, flag, one_of, usage

if TYPE_CHECKING:
    from trainwatch.core.app.plan.launch_plan import LaunchPlan
    from trainwatch.core.app.plan.specs import Overrides
    from trainwatch.core.app.start.project_run import RunToStart
    from trainwatch.core.app.start.start_choice import StartChoice, Wish
    from trainwatch.core.model.run import RunSpec


VERBS = Verbs()


SETTINGS = (
    arg("--set", dest="settings", action="append", default=[], metavar="KEY=VALUE",
        help="change a setting of the trainer, over profile, command and config (in a copy); several are possible"),
    arg("--lr", type=float, metavar="X",
        help="the learning rate from now on (a restored scheduler may bring its own back)"),
)  # fmt: skip
"""Change settings of the trainer for every launch of the run from now on."""
BEGIN = (
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
)
"""With what a run starts."""
ACT_MODES = ("all", "ask", "notify")


def launch_options(*, adopted: bool = False, queued: bool = False) -> tuple[Argument, ...]:
    """Options that describe a run and how it is supervised. ``adopted``: its trainer runs already.

    ``queued``: it starts later and without a screen; what says so is accepted and not listed.
    """
    name = "the session's, else from the command" if adopted else "from the command"
    recognised = "recognised" if adopted else "recognised from the command"
    config = "default: found in its command" if adopted else "each attempt gets a derived copy"
    lines = "one JSON object" if queued else "JSON lines instead of text (with --headless or no terminal)"
    headless, detach = "no screen; report line by line", "start a supervisor and come back at once"
    return (
        arg("--name", help=f"the run's name (default: {name})"),
        arg("--preset", help=f"framework preset (default: {recognised}; see `trainwatch presets`)"),
        arg("--config", metavar="F", help=f"the trainer's own TOML or YAML ({config})"),
        arg("--output-dir", metavar="D",
            help="where the trainer saves checkpoints (default: as its flags or config say, else found by what it "
            "writes)"),
        arg("--interval", dest="interval_s", type=float, metavar="S",
            help="seconds between two health lines (default: [watch] summary_s, else 300)"),
        arg("--max-restarts", type=int, metavar="N",
            help="restarts without progress in between (default: [restart] max_restarts, else 3)"),
        arg("--act", dest="act_mode", choices=ACT_MODES,
            help="what is done without you: all (default), ask first, or notify only: nothing is ended or started"),
        arg("--save-signal", choices=("USR1", "USR2"),
            help="signal on which the trainer saves a checkpoint; sent before a stop, only to processes that catch it"),
        arg("--save-file", metavar="F", help="file that asks the trainer to save; touched before a stop"),
        arg("--end-by", metavar="TIME",
            help='local time by which the run must have ended: "08:00"; it is saved and stopped before then'),
        arg("--at-finish", metavar="COMMAND", help="command in quotes, run once when the training is done"),
        arg("--at-give-up", metavar="COMMAND", help="command in quotes, run once when the run is given up"),
        flag("--json", lines),
        arg("--progress-shape", dest="shapes", action="append", metavar="REGEX",
            help="form of a progress line that is not read by itself, as 'sweep (?P<step>\\d+) of "
            "(?P<total_steps>\\d+)'; several are possible (docs/how-to/own-log-lines.md)"),
        one_of(
            arg("--headless", dest="run_headless", action="store_true", help=argparse.SUPPRESS if queued else headless),
            flag("--detach", argparse.SUPPRESS if queued else detach),
        ),
        command_words(argparse.SUPPRESS if adopted else "the trainer's command line"),
    )  # fmt: skip


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
    *BEGIN,
    arg("--yes", "-y", action="store_true", help="do not ask (--fresh)"),
    flag("--force", "start although a check fails (see `trainwatch check`)"),
    flag("--dry-run", "show what would be started, and start nothing"),
    arg("--queued", metavar="KEY:GPUS", help=argparse.SUPPRESS),  # by the queue
    *SETTINGS,
    *launch_options(),
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
        return _show(args, plan, wish)
    outlive_reader()
    if "--dry-run" in args.words:
        warn("--dry-run went to the trainer: an option of trainwatch stands before the command")
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


def words_of(args: argparse.Namespace) -> tuple[str, ...]:
    """The trainer's command line, as it was typed."""
    return tuple(args.command_after_dashes or args.words)


def asked_plan(args: argparse.Namespace, options: "Overrides") -> "LaunchPlan | None":
    """The plan of the command, or of the run of this folder's trainwatch.toml; None without either."""
    from msgspec import structs

    from trainwatch.core.app.plan.launch_plan import plan_command, plan_project

    if words := words_of(args):
        return plan_command(words, options)
    return plan_project(args.name, structs.replace(options, name=None))


def _plan(args: argparse.Namespace) -> "LaunchPlan":
    """The plan of the command, or without one of the run of this folder's trainwatch.toml."""
    from msgspec import structs

    from trainwatch.core.app.plan.launch_plan import plan_command, plan_launch
    from trainwatch.core.app.plan.trainer_settings import asked_changes, without_a_place

    plan = asked_plan(args, overrides_of(args)) or plan_command((), overrides_of(args))
    if args.queued:
        from trainwatch.core.model.launch import queued

        plan = plan_launch(queued(plan.spec, args.queued))
    if not args.settings and args.lr is None:
        return plan

    changes = asked_changes(plan, args.settings, args.lr)
    for doubt in without_a_place(plan, changes):
        warn(doubt)
    return plan_launch(structs.replace(plan.spec, changes=changes))


def _show(args: argparse.Namespace, plan: "LaunchPlan", wish: "Wish") -> int:
    """Print the launch that would be made, and what would refuse it."""
    from trainwatch.core.app.plan.launch_plan import plan_from
    from trainwatch.core.app.plan.resume_plan import rehearsed_words, second_argv
    from trainwatch.core.app.plan.trainer_settings import job_script
    from trainwatch.core.app.preflight.checklist import told_before_start
    from trainwatch.core.app.preflight.command_checks import command_warnings
    from trainwatch.core.app.start.project_run import plan_of_choice
    from trainwatch.core.views.length_words import resume_line, resume_object, second_start_line, second_start_object
    from trainwatch.core.views.words import by_itself

    spec, derived = plan.spec, plan.derived
    if derived is None and not args.json:
        raise CliError(ExitCode.USAGE, plan.problem or "the launch cannot be derived")
    choice, problem = _choice(plan, wish, forced=args.force)
    start = choice.said or "a new run from the beginning"
    if not problem and choice.known is None and choice.checkpoint is not None:
        plan = plan_from(plan, choice.checkpoint)
        derived = plan.derived or derived
    checks = told_before_start(plan if problem else plan_of_choice(plan, choice))
    told: dict[str, Any] = {
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
        "second_start": second_start_object(spec.second_start, second_argv(spec, plan.preset) or spec.command),
        "engine": spec.engine,
        "job_script": job_script(plan),
    }
    if derived is None:
        put(args, told)
        return ExitCode.USAGE
    added = {k: v for k, v in derived.env.items() if os.environ.get(k) != v}
    unread = "Restart: its source is not read, so what it deletes or writes over is unknown"
    restart = second_start_line(spec.second_start) or (unread if spec.second_start.unread else None)
    script = "engine   slurm: each attempt is a job; the batch script of the first one:\n" + (job_script(plan) or "")
    return put(
        args,
        told,
        f"run      {spec.name} (profile {spec.settings.profiles.use or '–'})",
        f"preset   {spec.preset}: {told['preset_why']}",
        f"command  {shlex.join(plan.command_shown)}",
        f"problem  {problem}: the launch would be refused" if problem else f"start    {start}",
        *(f"warning  {warning}" for warning in told["warnings"]),
        *(f"check    {check_line(check)}" for check in checks),
        f"cwd      {spec.cwd}",
        f"output   {spec.output_dir or spec.output_hint or 'not known'}: {told['output_why']}",
        f"night    {told['rehearsed'] or 'not rehearsed: `trainwatch rehearse` before the night'}",
        *(f"change   {c.where} {c.key}: {_value(c.before)} -> {_value(c.after)}  {c.why}" for c in derived.changes),
        *(f"env      {key}={value}" for key, value in sorted(added.items())),
        resume_line(spec.resume_way),
        *([] if restart is None else [restart]),
        f"then     {by_itself(spec.settings, spec.resume_way)}",
        *(script.splitlines() if told["job_script"] else ()),
        "nothing was started (--dry-run)" + ("; it would be refused: see *problem* above" if problem else ""),
    )


def _print_refused(args: argparse.Namespace, problem: str) -> None:
    """The object of a dry run for a command of which no launch can be planned."""
    from trainwatch.core.model.preset import SecondStart
    from trainwatch.core.views.length_words import resume_object, second_start_object

    unknown = ("preset", "preset_why", "output_dir", "output_why", "start", "goes_on_with", "checkpoint", "rehearsed")
    empty: dict[str, Any] = {"warnings": [], "checks": [], "changes": [], "engine": None, "job_script": None}
    argv = list(words_of(args))
    told = {"run": args.name, "argv": argv, "problem": problem, "resume": resume_object(None)}
    second = second_start_object(SecondStart(unread=problem), argv)
    print_json({**dict.fromkeys(unknown), **empty, **told, "second_start": second})


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
    *launch_options(adopted=True),
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
        warn(remark)
    return supervise_run(RunToStart(run), args, "adopted")


@VERBS(
    "init",
    "write a commented trainwatch.toml",
    "Writes trainwatch.toml into this folder, with every key and what it means. The framework is detected from "
    "the command and the config. An existing file is never overwritten.",
    "--output-dir outputs -- python train.py --config cfg.yaml",
    usage("trainwatch init [options] [-- COMMAND …]"),
    arg("--name", help="the run's name (default: the folder's)"),
    arg("--preset", help="framework preset (default: detected)"),
    arg("--config", metavar="F", help="the trainer's own TOML or YAML"),
    arg("--output-dir", metavar="D", help="where the trainer saves (default: as its own flags or config say)"),
    flag("--trainbeat", "write only trainbeat.py, with which a script tells its steps (docs: heartbeat)"),
    command_words(),
)
def init_verb(args: argparse.Namespace) -> int:
    """2 if it exists or an option is wrong."""
    if args.trainbeat:
        import trainbeat

        with Path("trainbeat.py").open("xb") as copy:
            copy.write(Path(trainbeat.__file__).read_bytes())
        print("trainbeat.py: written; `import trainbeat` in a script beside it")
        return ExitCode.DONE
    from trainwatch.core.app.plan.specs import write_project
    from trainwatch.core.views.length_words import resume_line

    path, preset, output_dir, resume = write_project(words_of(args), overrides_of(args))
    saves = f", output_dir {output_dir}" if output_dir else ""
    print(f"{path}: written (preset {preset}{saves}); check its values, then: trainwatch check, trainwatch")
    print(printable(resume_line(resume)))
    return ExitCode.DONE


def overrides_of(args: argparse.Namespace) -> "Overrides":
    """The options of this verb that are fields of ``Overrides``. Raises CliError for an open quote in a command."""
    from trainwatch.core.app.plan.specs import Overrides

    told = {field: getattr(args, field, None) for field in Overrides.__struct_fields__}
    told["act"] = getattr(args, "act_mode", None)  # ``args.act`` carries the verb out
    told["shapes"] = None if told["shapes"] is None else tuple(told["shapes"])
    for field in ("at_finish", "at_give_up"):
        try:
            told[field] = None if told[field] is None else tuple(shlex.split(told[field]))
        except ValueError as error:
            raise CliError(ExitCode.USAGE, f"--{field.replace('_', '-')}: {error}: {told[field]}") from None
    return Overrides(**told)


def supervise_run(ready: "RunToStart", args: argparse.Namespace, word: str) -> int:
    """In the foreground, on the screen, or detached, as the options and the terminal say; returns the exit code.

    ``word``: what was done, for the line that ``--detach`` prints. Raises CliError.
    """
    from trainwatch.core.views.length_words import resume_line, second_start_line
    from trainwatch.core.views.words import by_itself

    run = ready.run
    spec, out = run.load_spec(), sys.stderr if args.json else sys.stdout
    way, doing = spec.resume_way, f"trainwatch: {by_itself(spec.settings, spec.resume_way)}"
    for line in filter(None, (doing, resume_line(way), second_start_line(spec.second_start))):
        print(printable(line), file=out, flush=True)
    tell(ready)
    screen = not (args.run_headless or args.json or args.detach)
    if screen:
        from trainwatch.tui.ui.terminal import can_show_screen

        screen = can_show_screen()
    if not args.detach and not screen:
        from .events import supervise_and_print

        return supervise_and_print(run, plan=ready.plan, first=ready.first, as_json=args.json, claim=ready.claim)
    from trainwatch.core.app.start.detached import launch_detached, start_detached
    from trainwatch.core.model.run import TERMINAL_STATES

    if screen:
        from .bare_command import open_screen

        start_detached(run, ready.first, ready.claim)
        return open_screen(run)
    look = f"look at it with `{typed('status', run.id)}` or `trainwatch`"
    pid, found = launch_detached(run, ready.first, ready.claim)
    if found is not None:
        word = f"{found.state.replace('_', ' ')} ({printable(found.state_reason)})"
        if found.state in TERMINAL_STATES:
            raise CliError(ExitCode.FAILED, f"{printable(spec.name)}: {word}; {look}")
    print(f"{printable(spec.name)}: {word}, supervisor {pid}; {look}")
    return ExitCode.DONE


def tell(ready: "RunToStart") -> None:
    """Print what the checks say about the launch of a new run. An error in a check does not prevent a launch."""
    from trainwatch.core.app.preflight.checklist import told_at_launch

    try:
        lines = [] if ready.plan is None else [check_line(check) for check in told_at_launch(ready.plan)]
    except Exception as error:
        lines = [f"checks: could not be made: {error!r}"]
    for line in filter(None, (*lines, ready.said)):
        warn(line)


@VERBS(
    "demo",
    "a short real training with scripted failures, in about a minute",
    "Launches a short real training that crashes once and hangs once, and shows how it is restarted. Everything "
    "is real: processes, checkpoints, evidence, restarts. State goes to TRAINWATCH_HOME/demo.",
    "--headless --json",
    flag("--torch", "the PyTorch trainer (needs torch) instead of the numpy one"),
    arg("--headless", dest="demo_headless", action="store_true", help="no screen; print line by line"),
    flag("--json", "with --headless: JSON lines, the result object last"),
    flag("--fake-gpu", "show a simulated GPU, labelled as such"),
)
def demo_verb(args: argparse.Namespace) -> int:
    """0 if the training finished after the crash and the hang."""
    from trainwatch.core.app.examples import demo_result, demo_run
    from trainwatch.tui.ui.terminal import can_show_screen

    run = demo_run(torch=args.torch, simulated_gpu=args.fake_gpu)
    if not args.demo_headless and not args.json and can_show_screen():
        from trainwatch.core.app.start.detached import start_detached

        from .bare_command import open_screen

        start_detached(run)
        return open_screen(run)
    from .events import supervise_and_print

    code = supervise_and_print(run, as_json=args.json, stop_trainer=True)  # an interrupted demo leaves no trainer
    outcome = demo_result(run)
    seen = ", ".join(f"{kind} {s:.1f} s" for kind, s in outcome["detect_s"].items() if s is not None)
    counts = f"finished: {outcome['finished']} · attempts: {outcome['attempts']}"
    put(args, outcome, "", f"{counts} · steps done again: {outcome['lost_steps']} · detected after: {seen}")
    return code or (ExitCode.DONE if outcome["finished"] else ExitCode.FAILED)


@VERBS(
    "drill",
    "real faults in an example trainer: is each detected and survived?",
    "Runs a short real training once per fault and shows what was detected, after how long, and how it ended. "
    "Takes about a minute. State goes to TRAINWATCH_HOME/drill.",
    "",
    JSON,
)
def drill_verb(args: argparse.Namespace) -> int:
    """1 if a fault was not detected or not survived."""
    from trainwatch.core.app.examples import drill

    rows = []
    for row in drill():
        rows.append(row)
        if not args.json:
            mark, seen = "ok  " if row["passed"] else "FAIL", ", ".join(row["seen"]) or "nothing seen"
            after = f"after {row['detect_s']:.1f} s" if row["detect_s"] is not None else ""
            counts = f"attempts {row['attempts']}, steps lost {row['lost_steps']}, {row['state']}"
            print(f"{mark}  {row['fault']:24} {seen:32} {after:14} {counts}", flush=True)
    passed = all(row["passed"] for row in rows)
    end = "all were detected and survived" if passed else "not all were detected and survived: see the lines above"
    put(args, {"passed": passed, "exercises": rows}, end)
    return ExitCode.DONE if passed else ExitCode.FAILED
