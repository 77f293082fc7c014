"""What ``run`` and ``adopt`` share: the options of a run without a config file, and how it is supervised."""

import argparse
import shlex
import sys
from typing import IO, TYPE_CHECKING

from trainwatch.core.app.errors import CliError, ExitCode
from trainwatch.core.model.suggestion import typed

from .output import printable, warn

if TYPE_CHECKING:
    from trainwatch.core.app.plan.launch_plan import LaunchPlan
    from trainwatch.core.app.plan.specs import Overrides
    from trainwatch.core.app.preflight.check import Check
    from trainwatch.core.app.start.project_run import RunToStart


def add_launch_options(parser: argparse.ArgumentParser, *, adopted: bool, queued: bool = False) -> None:
    """Options that describe a run and how it is supervised. ``adopted``: its trainer runs already.

    ``queued``: it starts later and without a screen; what says so is accepted and not listed.
    """
    name = "the session's, else from the command" if adopted else "from the command"
    recognised = "recognised" if adopted else "recognised from the command"
    config = "default: found in its command" if adopted else "each attempt gets a derived copy"
    parser.add_argument("--name", help=f"the run's name (default: {name})")
    parser.add_argument("--preset", help=f"framework preset (default: {recognised}; see `trainwatch presets`)")
    parser.add_argument("--config", metavar="F", help=f"the trainer's own TOML or YAML ({config})")
    saves = "where the trainer saves checkpoints (default: as its flags or config say, else found by what it writes)"
    parser.add_argument("--output-dir", metavar="D", help=saves)
    parser.add_argument(
        "--interval",
        type=float,
        metavar="S",
        help="seconds between two health lines (default: [watch] summary_s, else 300)",
    )
    parser.add_argument(
        "--max-restarts",
        type=int,
        metavar="N",
        help="restarts without progress in between (default: [restart] max_restarts, else 3)",
    )
    parser.add_argument(
        "--act",
        dest="act_mode",
        choices=("all", "ask", "notify"),
        help="what is done without you: all (default), ask first, or notify only: nothing is ended or started",
    )
    parser.add_argument(
        "--save-signal",
        choices=("USR1", "USR2"),
        help="signal on which the trainer saves a checkpoint; sent before a stop, only to processes that catch it",
    )
    parser.add_argument("--save-file", metavar="F", help="file that asks the trainer to save; touched before a stop")
    parser.add_argument(
        "--end-by",
        metavar="TIME",
        help='local time by which the run must have ended: "08:00"; it is saved and stopped before then',
    )
    for option, when in (("--at-finish", "the training is done"), ("--at-give-up", "the run is given up")):
        parser.add_argument(option, metavar="COMMAND", help=f"command in quotes, run once when {when}")
    lines = "one JSON object" if queued else "JSON lines instead of text (with --headless or no terminal)"
    parser.add_argument("--json", action="store_true", help=lines)
    parser.add_argument(
        "--progress-shape",
        action="append",
        metavar="REGEX",
        help="form of a progress line that is not read by itself, as 'sweep (?P<step>\\d+) of (?P<total_steps>\\d+)'; "
        "several are possible (docs/how-to/own-log-lines.md)",
    )
    how = parser.add_mutually_exclusive_group()
    for option, dest, told in (
        ("--headless", "run_headless", "no screen; report line by line"),
        ("--detach", "detach", "start a supervisor and come back at once"),
    ):
        how.add_argument(option, dest=dest, action="store_true", help=argparse.SUPPRESS if queued else told)
    command = argparse.SUPPRESS if adopted else "the trainer's command line"
    parser.add_argument("words", nargs=argparse.REMAINDER, metavar="COMMAND", help=command)


def add_settings(parser: argparse.ArgumentParser) -> None:
    """Options that change settings of the trainer for every launch of the run from now on."""
    parser.add_argument(
        "--set", dest="settings", action="append", default=[], metavar="KEY=VALUE",
        help="change a setting of the trainer, over profile, command and config (in a copy); several are possible",
    )  # fmt: skip
    parser.add_argument(
        "--lr",
        type=float,
        metavar="X",
        help="the learning rate from now on (a restored scheduler may bring its own back)",
    )


OVERRIDES = {
    **{name: name for name in ("name", "preset", "profile", "config", "output_dir", "max_restarts", "end_by")},
    **{name: name for name in ("save_signal", "save_file")},
    "interval_s": "interval",
    "act": "act_mode",
}
"""Fields of ``Overrides``, each with the option that has its value."""


def overrides_of(args: argparse.Namespace) -> "Overrides":
    """The run's overrides from the options."""
    from trainwatch.core.app.plan.specs import Overrides

    told = {field: getattr(args, option, None) for field, option in OVERRIDES.items()}
    shapes = getattr(args, "progress_shape", None)
    return Overrides(
        **told,
        at_finish=_words(args, "at_finish"),
        at_give_up=_words(args, "at_give_up"),
        shapes=None if shapes is None else tuple(shapes),
    )


def _words(args: argparse.Namespace, option: str) -> tuple[str, ...] | None:
    """A command in quotes as words; None if it is not given. Raises CliError."""
    text = getattr(args, option, None)
    if text is None:
        return None
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise CliError(ExitCode.USAGE, f"--{option.replace('_', '-')}: {error}: {text}") from None


def supervise_run(ready: "RunToStart", args: argparse.Namespace, word: str) -> int:
    """In the foreground, on the screen, or detached, as the options and the terminal say; returns the exit code.

    ``word``: what was done, for the line that ``--detach`` prints. Raises CliError.
    """
    from trainwatch.core.views.length_words import resume_line, second_start_line
    from trainwatch.core.views.words import by_itself

    run = ready.run
    spec, out = run.load_spec(), sys.stderr if args.json else sys.stdout
    print(f"trainwatch: {by_itself(spec.settings)}", file=out, flush=True)
    print(printable(resume_line(spec.resume_way)), file=out, flush=True)
    if (restart := second_start_line(spec.second_start)) is not None:
        print(printable(restart), file=out, flush=True)
    tell_checks(ready.plan, sys.stderr)
    if ready.said:
        warn(ready.said)
    screen = _wants_screen(args)
    if not args.detach and not screen:
        from .event_printer import supervise_and_print

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


def _wants_screen(args: argparse.Namespace) -> bool:
    if args.run_headless or args.json or args.detach:
        return False
    from trainwatch.tui.ui.terminal import can_show_screen

    return can_show_screen()


RESULT_WORDS = {"pass": "ok", "warn": "warn", "fail": "FAIL"}


def check_line(check: "Check") -> str:
    """``vram need: warn: profile balanced usually takes … -> use a smaller profile``."""
    if check.result == "pass":
        return printable(f"{check.name}: {check.found}")
    remedy = f" -> {check.remedy}" if check.remedy else ""
    return printable(f"{check.name}: {RESULT_WORDS[check.result]}: {check.found}{remedy}")


def tell_checks(plan: "LaunchPlan | None", out: IO[str]) -> None:
    """Print what the checks say about the launch of a new run. An error in a check does not prevent a launch."""
    from trainwatch.core.app.preflight.checklist import told_at_launch

    if plan is None:
        return
    try:
        lines = [check_line(check) for check in told_at_launch(plan)]
    except Exception as error:
        lines = [f"checks: could not be made: {error!r}"]
    for line in lines:
        print(f"trainwatch: {line}", file=out, flush=True)
