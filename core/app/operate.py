"""An operator's command: check its values, send it to the run's supervisor, or start a supervisor with it."""

from pathlib import Path
from typing import Any

import msgspec

from ..act.config.derive import misfit
from ..act.notify import send_notice
from ..model.fact import CommandReceived, Note, SupervisorEnded
from ..model.observation import Command, Reply, Request
from ..model.preset import NO_PROFILE
from ..model.run import PAUSED_STATES
from ..model.text import did_you_mean, printable, typed
from ..store.control_client import (
    ControlError,
    NoSupervisor,
    SupervisorSilent,
    leave_order,
    order_left,
    send,
    take_order,
)
from ..store.journal import JournalFollower, fold_whole_lines, load_story
from ..store.lock import is_held
from ..store.run_directory import RunDirectory
from ..views.checkpoint_list import how_to_resume
from ..views.state.concerns import reason_of
from .errors import CliError, ExitCode
from .plan.launch_plan import plan_launch, plan_project
from .plan.resume_plan import in_this_environment
from .plan.specs import definitions_of
from .preflight.check import Check
from .preflight.checklist import require_startable, told_at_resume
from .preflight.other_trainer import require_no_other
from .runs.known_runs import find_run
from .runs.output_claim import require_own_output_to_start, trainer_pid
from .runs.supervisor_life import story_now, supervisor_life
from .runs.waiting import turns
from .start.detached import start_detached
from .start.start_choice import checkpoint_named, has_no_place, read_way_again, unfit, what_to_add

ANSWER_S = 5.0
"""How long a new supervisor's answer to its first command is waited for."""
POLL_S = 0.05
LAUNCHING = frozenset({"resume", "restart"})
"""Verbs that start an attempt."""


def checkpoint_argument(run: RunDirectory, given: str | None) -> str | None:
    """The absolute path of a checkpoint that a person named: a path, a name in the output folder, or ``newest``."""
    return None if given is None else checkpoint_named(run.load_spec(), given)


def profile_argument(run: RunDirectory, name: str | None) -> str | None:
    """A profile that exists and that this run can use."""
    if name is None:
        return None
    spec = run.load_spec()
    known = definitions_of(spec).profiles
    if name == NO_PROFILE and name not in known:
        return name
    if name not in known:
        raise CliError(ExitCode.NOT_FOUND, f'no profile "{name}"{did_you_mean(name, known)}')
    if is_held(run.lock) and not known[name].is_for(spec.preset):
        raise CliError(ExitCode.USAGE, misfit(known[name], spec.preset))
    return name


def require_checked(run: RunDirectory, command: Command, *, forced: bool) -> Check | None:
    """Raise CliError if ``check`` fails on the launch that a person orders, unless it is ``forced``.

    Returns what the person should know of it, if there is something. The end of a pause launches nothing.
    """
    if _is_plain_resume(command) and story_now(run).state in PAUSED_STATES:
        return None

    plan = plan_launch(run.load_spec(), state=run.path.parents[1])
    spec = plan.spec if is_held(run.lock) else in_this_environment(plan.spec, plan.preset)  # of a new supervisor
    plan = msgspec.structs.replace(plan, spec=spec, begins="" if command.fresh else command.checkpoint)
    require_startable(plan, run, known=True, forced=forced, waits_for_room=goes_on_waiting(run, command) != "")
    return told_at_resume(plan)


def goes_on_waiting(run: RunDirectory, command: Command) -> str:
    """Why its restart is held, if that is a full disk, no supervisor is left, and the command asks for nothing else.

    A new supervisor launches it once there is room.
    """
    if not _is_plain_resume(command) or is_held(run.lock):
        return ""
    story = load_story(run.journal)
    return reason_of(story) if story.state_why.waits_for_room else ""


def _is_plain_resume(command: Command) -> bool:
    """Whether nothing but to go on is asked for."""
    return command == Command(t=command.t, verb="resume", by=command.by)


def send_command(run: RunDirectory, command: Command, *, starts_supervisor: bool) -> str:
    """Send the command and return the supervisor's answer. Without a supervisor one is started for a live trainer.

    ``starts_supervisor``: also if no trainer lives.
    """
    if (why := unfit(run, command)) is not None:
        raise CliError(ExitCode.FAILED, why)
    if command.checkpoint is not None and not command.fresh:
        _require_place(run, command.checkpoint, command.verb)
    try:
        reply = send(run, Request(command=command))
    except NoSupervisor:
        take_order(run)  # of a supervisor that is gone: this one is newer
        if starts_supervisor or trainer_pid(run) is not None:
            return _start_with(run, command)
        story, name = story_now(run), printable(run.load_spec().name)
        state, how = story.state, how_to_resume(story, (run.id,))
        if state != "finished":
            how += " (or S on the screen)"
            how = f"{how} starts it" if state == "idle" else f"to go on with it: {how}"
        raise CliError(
            ExitCode.NO_SUPERVISOR,
            f"{name} is {state.replace('_', ' ')}: nothing of it runs, and no supervisor; {how}",
        ) from None
    except ControlError as error:
        raise CliError(ExitCode.FAILED, str(error)) from None
    if not reply.ok:
        raise CliError(ExitCode.FAILED, reply.message)
    return reply.message or f"{command.verb}: accepted"


def _require_place(run: RunDirectory, named: str, verb: str) -> None:
    """Raise CliError with what to add if the command line has no place for the checkpoint that a person named."""
    spec = run.load_spec()
    if not has_no_place(definitions_of(spec).preset_of(spec), spec.command):
        return
    raise CliError(
        ExitCode.FAILED,
        f"{verb}: the command has no place for {printable(Path(named).name)}, so nothing was changed: "
        f"{printable(what_to_add(spec, typed('resume', run.id, '--from', named)))}",
    )


def _start_with(run: RunDirectory, command: Command) -> str:
    """Start a detached supervisor that begins with this command."""
    name = printable(run.load_spec().name)
    story = story_now(run)
    state = story.state
    if state == "finished" and command.verb == "resume" and command.checkpoint is None and not command.fresh:
        return f"{name} is finished: nothing to resume ({how_to_resume(story, (run.id,))})"
    require_own_output_to_start(run)
    if _is_plain_resume(command) and trainer_pid(run) is not None:
        # It needs a supervisor and no new attempt, also if it ends before the supervisor is there.
        pid = start_detached(run, command if state in PAUSED_STATES else None)
        return f"resume: a supervisor (pid {pid}) watches {name} now; its training goes on"
    if held := goes_on_waiting(run, command):
        return f"resume: a supervisor (pid {start_detached(run)}) watches {name} now; it is {printable(held)}"
    follower = JournalFollower(run.journal, fold_whole_lines(run.journal))
    pid = start_detached(run, command)
    refusal = _refusal(follower)
    if refusal is not None and story_now(run).state == "finished":  # seen only now: nobody watched its end
        return refusal
    if refusal is not None and trainer_pid(run) is None:
        raise CliError(ExitCode.FAILED, refusal)
    if command.verb not in LAUNCHING:
        return f"{command.verb}: accepted; a new supervisor (pid {pid}) does it, since {name} had none"
    return f"{command.verb}: a supervisor (pid {pid}) watches {name} now"


def _refusal(follower: JournalFollower) -> str | None:
    """What the new supervisor has against its first command, as its journal says; None if it carries it out.

    Also None if that is not known within ANSWER_S: the events tell it later.
    """
    received = False
    for _ in turns(ANSWER_S, POLL_S):
        for record in follower.poll():
            match record.fact:
                case CommandReceived():
                    received = True
                case Note(text=text, about="refusal") if received:
                    return text
                case SupervisorEnded():
                    return None
                case _ if received:
                    return None
                case _:
                    pass
    return None


# Orders of the screen.

SEND_TIMEOUT_S = 10.0


def order_on_screen(run: RunDirectory, command: Command) -> Reply:
    """Send it through the control socket; a supervisor that does not answer finds it when it goes on.

    If a way to resume is found now, the supervisor that does not know it is ended, and another one started.
    """
    try:
        if supervisor_life(run).frozen:
            return _left(run, command)
        if command.verb in LAUNCHING:
            require_no_other(run)
            if (told := read_way_again(run, command)) is not None:
                start_detached(run, command)
                return Reply(ok=True, message=told)
        return send(run, Request(command=command), SEND_TIMEOUT_S)
    except SupervisorSilent:
        return _left(run, command)
    except (ControlError, CliError) as error:
        return Reply(ok=False, message=str(error))


def _left(run: RunDirectory, command: Command) -> Reply:
    """Leave it for a supervisor that does not answer; one order can wait."""
    if (before := order_left(run, 0.0)) is not None:
        return Reply(ok=False, message=f"{before.verb} is not answered yet: [z] takes it back")
    leave_order(run, command)
    return Reply(ok=True, message=f"{command.verb}: not answered yet; [z] takes it back", data={"left": True})


def start_on_screen(run: RunDirectory, then: Command | None) -> None:
    """Start a supervisor in a session of its own. Raises RuntimeError with a sentence."""
    if then is not None and (why := unfit(run, then)) is not None:
        raise RuntimeError(why)
    if then is not None:
        take_order(run)  # one that was left before is older
    try:
        if trainer_pid(run) is None or (then is not None and then.verb in LAUNCHING):
            require_no_other(run)
        read_way_again(run, then)
        start_detached(run, then)
    except CliError as error:
        raise RuntimeError(str(error)) from error


# A notice that is sent on request, to see that it arrives.


def send_test_notice(name: str | None) -> dict[str, Any]:
    """Send it as the project's run would, else as the run of this name. Raises CliError.

    Returns ``ok``, ``detail`` (who was notified, or why not) and ``output`` of the user's command.
    """
    plan = plan_project(name)
    spec = find_run(name).load_spec() if plan is None else plan.spec
    if not spec.settings.notify.urls and not spec.settings.notify.command:
        raise CliError(
            ExitCode.USAGE,
            f"{spec.name} notifies nobody: add to {spec.project or 'a trainwatch.toml'}: "
            '[notify] urls = ["ntfy://ntfy.sh/TOPIC"]',
        )
    ok, detail, output = send_notice(
        spec, "finish", f"trainwatch: a test from {spec.name}", "This is a test. Nothing happened to the run."
    )
    return {"ok": ok, "detail": detail, "output": output}
