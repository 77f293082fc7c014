"""The verbs that control a run."""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from trainwatch.core.app.errors import CliError, ExitCode

from .output import put, warn
from .start import ACT_MODES, SETTINGS
from .verb import ASK, BY, JSON, RUN, YES, Argument, Verb, Verbs, arg, confirm, flag, one_of, operate, run_of, usage

VERBS = Verbs()


NEVER_ASKED = arg("--yes", "-y", action="store_true", help="do not ask (this verb never asks; accepted for scripts)")
"""Every verb takes it, so that scripts need not know which of them ask."""
FRESH = flag("--fresh", "from the beginning, whatever checkpoints there are")
NEXT_ATTEMPT = (
    arg("--incident", type=int, metavar="N", help="only if incident N still waits for an answer ([restart] act)"),
    arg(
        "--with",
        dest="remedies",
        action="append",
        default=[],
        metavar="REMEDY",
        help="apply a remedy that was proposed (named in `trainwatch events`)",
    ),
    flag("--without-remedies", "take back all remedies that were applied"),
    flag("--force", "although a check fails (see `trainwatch check`)"),
)
OF_NEXT_ATTEMPT = {name: name for name in ("fresh", "incident", "remedies", "without_remedies")}


def sent(
    help_: str,
    description: str = "",
    example: str = "",
    *,
    options: Sequence[Argument] = (),
    fields: Mapping[str, str] = {},
    ask: str | None = None,
    launches: bool = False,
) -> Verb:
    """A verb that sends a command to the supervisor of a run.

    ``options``: its own; ``fields``: of the command, each with the option that has its value. ``ask``: asked
    on a terminal. ``launches``: it starts an attempt, and a supervisor if there is none.
    """

    def act(args: argparse.Namespace) -> int:
        values = {field: getattr(args, option) for field, option in fields.items()}
        return operate(args, ask=ask, forced=args.force if launches else None, **values)

    return Verb(help_, description or help_, example, (*options, YES if ask else NEVER_ASKED, BY, RUN), act)


@VERBS(
    "resume",
    "continue after a pause, a stop, an interruption or a give-up",
    "Continues a run after a stop, an interruption or a give-up, from its newest verified checkpoint. A run that is "
    "paused, or that a signal stopped, goes on where it is. A command after -- replaces that of the run: resume RUN -- "
    "NEW COMMAND.",
    "--from outputs/name-000004.safetensors",
    usage("trainwatch resume [options] [RUN] [-- NEW COMMAND …]"),
    one_of(
        FRESH,
        arg(
            "--from",
            dest="checkpoint",
            metavar="CHECKPOINT",
            help='file or directory to resume from: a path, a name in the output folder, or "newest" there',
        ),
        flag("--paused", "only if it is paused; starts no attempt (also: unpause)"),
    ),
    *SETTINGS,
    *NEXT_ATTEMPT,
    ASK,
    NEVER_ASKED,
    BY,
    RUN,
)
def resume_verb(args: argparse.Namespace) -> int:
    if args.paused:
        if args.command_after_dashes or args.settings or args.remedies or args.lr is not None:
            raise CliError(ExitCode.USAGE, "--paused only ends a pause: nothing else can be asked for with it")
        return operate(args, verb="unpause")
    by = args.by
    if args.command_after_dashes or args.settings or args.lr is not None:
        if args.ask:
            raise CliError(ExitCode.USAGE, "--ask asks for a plain resume: no other command, no other settings")
        from trainwatch.core.app.operate import checkpoint_argument
        from trainwatch.core.app.start.project_run import checkpoint_after, give_command, give_settings

        run = run_of(args)
        checkpoint_argument(run, args.checkpoint)  # a wrong one changes nothing
        if args.command_after_dashes:
            warn(give_command(run, args.command_after_dashes, forced=args.force, tell=warn))
            by += ", with a new command"
        if args.settings or args.lr is not None:
            changed = give_settings(run, args.settings, args.lr, tell=warn)
            warn(f"run {run.id} has from now on: {changed}")
            by += f", with {changed}"
        if not args.fresh and args.checkpoint is None:
            args.checkpoint = checkpoint_after(run)
    values = {name: getattr(args, name) for name in (*OF_NEXT_ATTEMPT, "checkpoint")}
    return operate(args, forced=args.force, by=by, **values)


@VERBS(
    "enable",
    "resume a run after a reboot, by systemd or cron",
    "Writes a unit of systemd's user manager that supervises the run after a reboot (it resumes from the newest "
    "verified checkpoint) and replaces a supervisor that died or froze. If systemd does not run, the line for "
    "cron is printed or, under WSL2, for Windows. A unit of yours is never written over, nor is your crontab edited.",
    "--print",
    RUN,
    flag("--print", "show what would be written, and write nothing"),
    JSON,
    flag("--yes", "accepted for scripts; nothing is asked"),
)
def enable_verb(args: argparse.Namespace) -> int:
    """0 if the unit is written, also if systemd does not run here: the line for cron is printed then."""
    from trainwatch.core.app.enable import enabling_of, switch_on, write_unit

    found = enabling_of(run_of(args))
    written = not args.print and write_unit(found)
    trouble = None if args.print else switch_on(found)
    undo = f"systemctl --user disable {found.path.name}; rm {found.path}"
    told = {"unit": str(found.path), "text": found.unit, "written": written, "trouble": trouble, "cron": found.cron,
            "enabled": not args.print and trouble is None, "windows": found.windows, "undo": undo}  # fmt: skip
    if args.print:
        lines = [f"# {found.path}", *found.unit.split("\n"), "# without systemd, a line for `crontab -e`:"]
        lines += found.cron.splitlines()
    else:
        lines = [f"{found.path}: {'written' if written else 'is there already'}"]
        if trouble is None:
            lines.append(
                f"it is started at the next boot; now: systemctl --user start {found.path.name} (if it does not run "
                "already); it needs: loginctl enable-linger $USER"
            )
        else:
            if not args.json:
                warn(f"systemd does not start it here ({trouble})")
            lines += ["without systemd, put this line into `crontab -e`:", *found.cron.splitlines()]
        lines.append(f"undo: {undo}")
    if found.windows is not None:
        where = "under WSL2, nothing runs before Windows starts the distribution; in a Windows terminal:"
        lines += [where, *found.windows.splitlines()]
    return put(args, told, *lines)


@VERBS(
    "forget",
    "remove what is kept about a run that is over; its outputs stay",
    "Removes the run's folder in the state folder: journal, logs, charts, evidence. Checkpoints and all other files of "
    "your training stay where they are. Refused while a supervisor or the trainer is alive.",
    "luca",
    arg("run", help="name or id of the run"),
    YES,
)
def forget_verb(args: argparse.Namespace) -> int:
    """0 if it was removed."""
    from trainwatch.core.app.runs.forgetting import forget, kept_about

    run = run_of(args)
    kept = kept_about(run)
    if not args.yes and not sys.stdin.isatty():
        raise CliError(ExitCode.USAGE, f"this removes {kept}; add --yes if that is meant")
    if not args.yes:
        confirm(f"remove {kept}? Checkpoints and other outputs stay.")
    forget(run)
    print(f"removed: {kept}")
    return ExitCode.DONE


@VERBS(
    "supervise",
    None,
    "Supervises a known run in the foreground, or detached from the terminal.",
    "luca-1a2b3c4d --detach",
    arg("run", help="name or id of the run"),
    flag("--detach", "continue in the background; prints the pid"),
    flag("--json", "JSON lines instead of text"),
    arg("--try", dest="only_try", action="store_true", help="load what it needs, and end"),
    arg("--then", metavar="JSON", help="an operator command to begin with"),
)
def supervise_verb(args: argparse.Namespace) -> int:
    """Supervise; the exit code is that of ``--headless``, with ``--detach`` 4 if the run has a supervisor.

    70 if the supervisor itself failed, by a bug or a file that cannot be used.
    """
    from trainwatch.core.model.json_line import decode_exact
    from trainwatch.core.model.observation import Command

    state = os.environ.get("TRAINWATCH_HOME")  # a unit names it, and its disk may come late after a boot
    if state and not os.path.isdir(Path(state, "runs").expanduser()):  # noqa: PTH112  (Path.is_dir raises)
        raise CliError(ExitCode.CRASHED, f"{state} holds no runs: is its disk mounted?")
    run = run_of(args)
    if args.only_try:
        from trainwatch.core.app.foreground import can_supervise

        can_supervise(run)
        return ExitCode.DONE
    first = decode_exact(args.then.encode(), Command) if args.then else None
    if args.detach:
        from trainwatch.core.app.start.detached import become_detached, require_free

        require_free(run)
        pid = become_detached(run)
        if pid:
            print(pid)
            return ExitCode.DONE if pid > 0 else ExitCode.FAILED
    from .events import supervise_and_print

    try:
        code = supervise_and_print(run, first=first, as_json=args.json)
    except CliError:
        raise
    except OSError as error:  # systemd starts it again: this is not the end of the run
        raise CliError(ExitCode.CRASHED, f"{error.filename or run.path}: {error.strerror or error}") from None
    except Exception:
        import traceback

        traceback.print_exc()
        return ExitCode.CRASHED
    sys.stdout.flush()
    return code


VERBS |= {
    "stop": sent(
        "end the training gently; it is not restarted until `resume`",
        "Ends the training gently: signals with time to save, then SIGKILL. It is not started again until `resume` or "
        "`restart`.",
        options=(ASK,),
        ask="End the training of {run} (it may save first) and hold restarts?",
    ),
    "kill": sent(
        "end the training at once (SIGKILL); not restarted until `resume`",
        "Ends the trainer and all its processes at once (SIGKILL), without time to save. It is not started again until "
        "`resume` or `restart`.",
        ask="Kill {run} now? What was not saved since the last checkpoint is lost.",
    ),
    "pause": sent("freeze the process tree (SIGSTOP); GPU memory stays held"),
    "restart": sent(
        "end this attempt, start the next from the newest checkpoint",
        "Ends this attempt of the training and starts the next one from the newest verified checkpoint: one that was "
        "read and found complete.",
        options=(FRESH, *NEXT_ATTEMPT, ASK),
        fields=OF_NEXT_ATTEMPT,
        launches=True,
    ),
    "save": sent(
        "ask the trainer for a checkpoint now",
        "Asks the trainer for a checkpoint: by trainbeat in its script, or by [run] save_signal or "
        "save_file. `stop` asks for one, too, before it ends the training.",
        options=(ASK,),
    ),
    "snooze": sent(
        "give a suspected hang ten minutes more",
        "Declares no hang of this run for ten minutes. `trainwatch wait` waits for the end of a run.",
    ),
    "act": sent(
        "choose what is done without you: all, ask first, or notify only",
        "Changes [restart] act for this run. all: a hung trainer is ended and a failed one restarted. ask: the "
        "question is sent with what it costs, and nothing is ended, started or deleted before you answer. notify: "
        "nothing is ended, started or deleted; the journal and the report have what would have been done.",
        "notify luca",
        options=(arg("mode", choices=ACT_MODES, help="what is done without you"),),
        fields={"act": "mode"},
    ),
    "ack": sent(
        "acknowledge the newest open incident (or --incident N)",
        options=(arg("--incident", type=int, metavar="N", help="which incident"),),
        fields={"incident": "incident"},
    ),
    "profile": sent(
        "switch the settings profile, at the next checkpoint or --now",
        example="conservative --now",
        options=(
            arg(
                "profile",
                metavar="NAME",
                help="profile to switch to (see `trainwatch profiles`); none: your own config as it stands",
            ),
            one_of(flag("--now", "restart at once"), flag("--at-checkpoint", "at the next checkpoint (the default)")),
        ),
        fields={"profile": "profile", "now": "now"},
    ),
}
