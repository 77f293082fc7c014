"""Start a supervisor apart from any terminal: its own session, no parent, output into the run's supervisor.log."""

import os
import subprocess
import sys
from pathlib import Path

from ...model.fact import AttemptStarted, CommandReceived, StateChanged
from ...model.json_line import encode_exact
from ...model.observation import Command, Request
from ...model.story import RunStory
from ...model.text import typed
from ...rank_files import tail_of
from ...spool import print_into
from ...store.control_client import ControlError, NoSupervisor, SupervisorSilent, send
from ...store.journal import load_story, read_journal
from ...store.lock import holder_pid, is_held
from ...store.run_directory import RunDirectory
from ..errors import CliError, ExitCode
from ..runs.output_claim import OutputClaim, is_at_rest, require_own_output_to_start, trainer_pid
from ..runs.waiting import turns

START_PATIENCE_S = 90.0
"""One that dies is seen at once; one that lives may be slow: more than 20 s at a load of 60 on two cores."""
LAUNCH_PATIENCE_S = 10.0
"""How long to wait for a launch before reporting that nothing runs yet. A launch takes less than a second."""
ROOM_PATIENCE_S = 3.0
"""The same of a restart that is held for a full disk: the first look at the disk tells whether there is room now."""
POLL_S = 0.05
UNDECIDED = {"idle", "starting"}
LAST_BYTES = 4096
"""Bytes read from the end of supervisor.log, for its last line."""


def start_detached(run: RunDirectory, command: Command | None = None, claim: OutputClaim | None = None) -> int:
    """Start one and return its pid once it holds the run's locks and has written its first record.

    ``claim``: the locks of the output folder that the caller holds; the supervisor shares them and keeps them, and they
    are released if none was started. Raises CliError if it did not start (its output is in supervisor.log). A short run
    may be over before its lock is seen; then the pid of the process is returned.
    """
    shared = False
    try:
        pid = _start(run, command)
        shared = True
        return pid
    except StillStartingError:
        shared = True
        raise
    finally:
        if claim is not None:
            (claim.hand_over if shared else claim.release)()


class StillStartingError(CliError):
    """It is not known yet whether the supervisor starts."""


def _start(run: RunDirectory, command: Command | None) -> int:
    require_free(run)
    argv = [sys.executable, "-m", "trainwatch", "supervise", run.id, "--detach"]
    argv += [] if command is None else ["--then", encode_exact(command).decode()]
    before = _version(run)
    launcher = subprocess.run(
        argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, env=os.environ, cwd="/"
    )
    if launcher.returncode == ExitCode.OWNED:  # another one was quicker
        require_free(run)
    if launcher.returncode != 0:
        why = launcher.stderr.strip() or "no reason given"
        raise CliError(ExitCode.FAILED, f"the supervisor could not be started: {why}")
    child = int(launcher.stdout.strip())
    for _ in turns(START_PATIENCE_S, POLL_S):
        ended = not Path(f"/proc/{child}").exists()
        if _version(run) != before:  # after it has taken the locks of the output folder
            return holder_pid(run.lock) or child
        if ended:
            break
    else:
        idle = f"the supervisor (pid {child}) has done nothing for {START_PATIENCE_S:.0f} s"
        raise StillStartingError(ExitCode.FAILED, f"{idle}: see {run.supervisor_log}")
    require_own_output_to_start(run)  # another run was quicker
    said = [line.strip() for line in tail_of(run.supervisor_log, LAST_BYTES).split("\n") if line.strip()]
    last = f": {said[-1]}" if said else ""
    raise CliError(ExitCode.FAILED, f"the supervisor did not start{last}; see {run.supervisor_log}")


def launch_detached(
    run: RunDirectory, command: Command | None = None, claim: OutputClaim | None = None
) -> tuple[int, RunStory | None]:
    """As ``start_detached``, and wait until the launch has succeeded or failed, at most LAUNCH_PATIENCE_S.

    Returns the pid, and the story if nothing runs yet (None: a trainer runs or ran). Raises CliError, JournalTooNew.
    """
    before = load_story(run.journal)
    pid = start_detached(run, command, claim)
    waits = command is None and before.state_why.waits_for_room
    story: RunStory | None = None
    for _ in turns(ROOM_PATIENCE_S if waits else LAUNCH_PATIENCE_S, POLL_S):
        if trainer_pid(run) is not None:
            return pid, None
        story = load_story(run.journal)
        if len(story.attempts) > len(before.attempts):
            return pid, story if story.state == "queued" else None
        changed = (story.state, story.state_t) != (before.state, before.state_t) and story.state not in UNDECIDED
        if changed or story.question is not None:
            break
    return pid, story


def require_free(run: RunDirectory) -> None:
    """Raise CliError if the run has a supervisor, or its output folder another run.

    Reported here, where a person reads it; the supervisor checks it again.
    """
    if (pid := holder_pid(run.lock)) is not None:
        raise CliError(ExitCode.OWNED, f"{run.id} already has a supervisor (pid {pid})")
    require_own_output_to_start(run)


def become_detached(run: RunDirectory) -> int:
    """Fork twice into a session of our own. Returns 0 in the daemon, its pid in the caller (which then ends)."""
    reader, writer = os.pipe()
    first = os.fork()
    if first:
        os.close(writer)
        os.waitpid(first, 0)
        with os.fdopen(reader) as answer:
            return int(answer.read() or "-1")
    os.close(reader)
    os.setsid()
    second = os.fork()
    if second:
        os.write(writer, str(second).encode())
        os._exit(0)
    os.close(writer)
    print_into(run.supervisor_log)
    return 0


def _version(run: RunDirectory) -> tuple[int, int] | None:
    """What changes with each record of the journal; None: there is none yet."""
    try:
        found = run.journal.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_size


# The supervisor of a run that is over ends, so that the run can go on in another way.

END_PATIENCE_S = 10.0

LOOK_S = 0.25
"""Period of reading the journal, which may be long."""
BEYOND_S = 60.0
"""Beyond the waits of the settings: SIGKILL, a save that is being written, the longer waits of WSL2."""


def end_supervisor(run: RunDirectory, by: str) -> None:
    """End it if there is one, and wait until it is gone. Raises CliError (exit code 4)."""
    asked = False
    for _ in turns(END_PATIENCE_S, POLL_S):
        if not is_held(run.lock):
            return
        try:  # it may end just now, or not have opened its socket yet
            if not asked:
                send(run, Request(command=Command(t=0.0, verb="shutdown", by=by)))
                asked = True
        except (NoSupervisor, SupervisorSilent):
            continue
        except ControlError as error:
            raise CliError(ExitCode.OWNED, f"the supervisor of {run.id} could not be ended: {error}") from None
    raise CliError(ExitCode.OWNED, f"the supervisor of {run.id} does not end; see `{typed('status', run.id)}`")


def end_is_ordered(run: RunDirectory) -> bool:
    ordered = False
    for record in () if is_at_rest(run) else read_journal(run.journal):
        match record.fact:
            case CommandReceived(verb="stop" | "kill"):
                ordered = True
            case CommandReceived(verb="resume" | "restart") | AttemptStarted() | StateChanged(state="stopped"):
                ordered = False
    return ordered


def wait_for_end(run: RunDirectory) -> None:
    """Wait until an end that was ordered is over, at most as long as it may take. Raises CliError (exit code 4)."""
    most_s = run.load_spec().settings.restart.stop_takes_s(saves=True) + BEYOND_S
    for _ in turns(most_s, LOOK_S):
        if not end_is_ordered(run):
            return
    raise CliError(ExitCode.OWNED, f"run {run.id} has not ended; see `{typed('status', run.id)}`")
