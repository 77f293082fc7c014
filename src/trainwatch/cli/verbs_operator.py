"""The keystrokes as commands: stop, kill, restart, resume, pause, unpause, wait, profile, ack."""

import argparse
import sys
from pathlib import Path
from typing import Any

import msgspec

from trainwatch.core.app.errors import CliError, ExitCode
from trainwatch.core.app.runs.known_runs import RUN_HELP, find_run, read_status
from trainwatch.core.app.start.resume_from import unfit
from trainwatch.core.model.observation import Command
from trainwatch.core.model.profile import NO_PROFILE

from .output import printable


class Verb(msgspec.Struct, frozen=True, kw_only=True):
    """One operator verb. ``asks``: what it costs, asked on a terminal unless --yes."""

    help: str
    asks: str | None = None
    starts_supervisor: bool = False


VERBS: dict[str, Verb] = {
    "stop": Verb(
        help="let it save if it can, then end it (INT, TERM, KILL with grace); holds restarts",
        asks="End the training of {run} (it may save first) and hold restarts?",
    ),
    "kill": Verb(
        help="end the whole process tree at once; holds restarts",
        asks="Kill {run} now? What was not saved since the last checkpoint is lost.",
    ),
    "restart": Verb(help="end this attempt and start the next from the newest good checkpoint", starts_supervisor=True),
    "resume": Verb(help="go on after a stop, an interruption or a give-up", starts_supervisor=True),
    "pause": Verb(help="freeze the process tree (SIGSTOP); GPU memory stays held"),
    "unpause": Verb(help="let a paused run go on"),
    "wait": Verb(help="be patient with a suspected hang"),
    "profile": Verb(help="switch the settings profile, at the next checkpoint or --now"),
    "ack": Verb(help="acknowledge the newest open incident (or --incident N)"),
}


def add(subparsers: Any) -> None:
    """Register all of them."""
    for name, verb in VERBS.items():
        parser = subparsers.add_parser(
            name, help=verb.help, description=verb.help, epilog=f"example: trainwatch {name}" + _example(name)
        )
        if name == "profile":
            parser.add_argument(
                "profile",
                metavar="NAME",
                help=f"profile to switch to (see `trainwatch profiles`); {NO_PROFILE}: your own config as it stands",
            )
            when = parser.add_mutually_exclusive_group()
            when.add_argument("--now", action="store_true", help="restart at once")
            when.add_argument("--at-checkpoint", action="store_true", help="at the next checkpoint (the default)")
        if name in {"resume", "restart"}:
            parser.add_argument(
                "--fresh", action="store_true", help="from the beginning, whatever checkpoints there are"
            )
        if name == "resume":
            parser.add_argument(
                "--from", dest="checkpoint", metavar="CHECKPOINT", help="file or directory to resume from"
            )
        if name in {"resume", "restart"}:
            parser.add_argument(
                "--with",
                dest="remedies",
                action="append",
                default=[],
                metavar="REMEDY",
                help="apply a remedy that was proposed (named in `trainwatch events`)",
            )
            parser.add_argument(
                "--without-remedies", action="store_true", help="take back all remedies that were applied"
            )
        if name == "ack":
            parser.add_argument("--incident", type=int, metavar="N", help="which incident")
        never = "" if verb.asks else " (it never does: so that scripts need not know which verbs ask)"
        parser.add_argument("--yes", "-y", action="store_true", help=f"do not ask{never}")
        parser.add_argument("run", nargs="?", help=RUN_HELP)
        parser.set_defaults(act=act)


def _example(name: str) -> str:
    return {"profile": " conservative --now", "resume": " --from outputs/name-000004.safetensors"}.get(name, "")


def act(args: argparse.Namespace) -> int:
    """Send the command; 0 when the supervisor accepted it."""
    from trainwatch.core.model.wire import Request
    from trainwatch.core.store.control import ControlError, NoSupervisor, send

    verb = VERBS[args.verb]
    run = find_run(args.run)
    command = Command(
        t=0.0,
        verb=args.verb,
        by="command line",
        checkpoint=_checkpoint(getattr(args, "checkpoint", None)),
        profile=_profile(run, getattr(args, "profile", None)),
        now=getattr(args, "now", False),
        incident=getattr(args, "incident", None),
        remedies=_remedies(tuple(getattr(args, "remedies", ()))),
        without_remedies=getattr(args, "without_remedies", False),
        fresh=getattr(args, "fresh", False),
    )
    if verb.asks and not args.yes and sys.stdin.isatty():
        _ask(verb.asks.format(run=run.load_spec().name))
    if (why := unfit(run, command)) is not None:
        raise CliError(ExitCode.FAILED, why)
    try:
        reply = send(run, Request(command=command))
    except NoSupervisor:
        if not verb.starts_supervisor:
            raise CliError(
                ExitCode.NO_SUPERVISOR,
                f"no supervisor is running for {printable(run.load_spec().name)}: start one with "
                f"`trainwatch resume {run.id}`, or S on the screen",
            ) from None
        return _start_with(run, command)
    except ControlError as error:
        raise CliError(ExitCode.FAILED, str(error)) from None
    if not reply.ok:
        raise CliError(ExitCode.FAILED, reply.message)
    print(reply.message or f"{args.verb}: accepted")
    return ExitCode.DONE


def _start_with(run: Any, command: Command) -> int:
    """No supervisor: start a detached one whose first word is this command."""
    from trainwatch.core.app.start.detached import start_detached
    from trainwatch.core.app.start.output_owner import require_own_output_to_start

    state = read_status(run)["state"]
    if state == "finished" and command.verb == "resume" and command.checkpoint is None and not command.fresh:
        print(f"{printable(run.load_spec().name)} is finished: nothing to resume (give --from CHECKPOINT to train on)")
        return ExitCode.DONE
    require_own_output_to_start(run)
    _require_way_to_resume(run, command)
    try:
        pid = start_detached(run, command)
    except RuntimeError as error:
        raise CliError(ExitCode.FAILED, str(error)) from None
    print(f"{command.verb}: a supervisor (pid {pid}) watches {printable(run.load_spec().name)} now")
    return ExitCode.DONE


def _require_way_to_resume(run: Any, command: Command) -> None:
    """The supervisor would refuse it, too, but where nobody reads it."""
    from trainwatch.core.config.project import FILE_NAME
    from trainwatch.core.config.shipped import load_presets
    from trainwatch.core.model.resuming import telling
    from trainwatch.core.store.journal import load_story

    spec = run.load_spec()
    presets = load_presets(Path(spec.project) if spec.project else Path(spec.cwd, FILE_NAME))
    preset = presets.get(spec.preset, presets["generic"])
    if command.fresh or preset.resume == "none" or telling(preset, spec.command).forms:
        return
    story = load_story(run.journal)
    saved = [c.name for c in story.checkpoints if c.verdict == "complete" and c.mtime >= story.wall0]
    if spec.settings.restart.if_not_told == "wait" and saved:
        raise CliError(
            ExitCode.FAILED,
            f"{command.verb}: the command has no way to be told of {printable(saved[-1])} (write {{resume}} where its "
            f"path belongs); a start would begin anew and write over it; `trainwatch {command.verb} --fresh` does that",
        )


def _checkpoint(given: str | None) -> str | None:
    if given is None:
        return None
    path = Path(given).absolute()
    if not path.exists():
        raise CliError(ExitCode.NOT_FOUND, f"{given}: no such checkpoint; see `trainwatch checkpoints list DIR`")
    return str(path)


def _profile(run: Any, name: str | None) -> str | None:
    from trainwatch.core.act.config.derive import misfit
    from trainwatch.core.app.start.framework import profiles_of
    from trainwatch.core.config.problem import did_you_mean
    from trainwatch.core.store.lock import is_held

    if name is None:
        return None
    spec = run.load_spec()
    known = profiles_of(spec)
    if name == NO_PROFILE and name not in known:
        return name
    if name not in known:
        raise CliError(ExitCode.NOT_FOUND, f'no profile "{name}"{did_you_mean(name, known)}')
    if is_held(run.lock) and not known[name].is_for(spec.preset):
        raise CliError(ExitCode.USAGE, misfit(known[name], spec.preset))
    return name


def _remedies(names: tuple[str, ...]) -> tuple[str, ...]:
    """Also where no supervisor is: one that is started with a typing error would start nothing."""
    from trainwatch.core.config.problem import did_you_mean
    from trainwatch.core.config.shipped import load_remedies

    known = {remedy.name for remedy in load_remedies()} if names else set()
    for name in names:
        if name not in known:
            raise CliError(ExitCode.FAILED, f"there is no remedy {name!r}{did_you_mean(name, known)}")
    return names


def _ask(question: str) -> None:
    print(f"{printable(question)} [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise CliError(ExitCode.FAILED, "left as it is")
