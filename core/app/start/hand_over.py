"""The supervisor of a run that is over ends, so that the run can go on in another way."""

import time

from ...model.control_messages import Request
from ...model.fact import AttemptStarted, CommandReceived, StateChanged
from ...model.observation import Command
from ...model.text.suggestion import typed
from ...store.control.control_client import ControlError, NoSupervisor, SupervisorSilent, send
from ...store.journal import read_journal
from ...store.lock import is_held
from ...store.run_directory import RunDirectory
from ..errors import CliError, ExitCode
from ..runs.output_owner import is_at_rest

END_PATIENCE_S = 10.0
POLL_S = 0.05
LOOK_S = 0.25
"""Period of reading the journal, which may be long."""
BEYOND_S = 60.0
"""Beyond the waits of the settings: SIGKILL, a save that is being written, the longer waits of WSL2."""


def end_supervisor(run: RunDirectory, by: str) -> None:
    """End it if there is one, and wait until it is gone. Raises CliError (exit code 4)."""
    end = time.monotonic() + END_PATIENCE_S
    while is_held(run.lock):
        try:
            send(run, Request(command=Command(t=0.0, verb="shutdown", by=by)))
            break
        except (NoSupervisor, SupervisorSilent):
            _wait(run, end)  # it ends just now, or has not opened its socket yet
        except ControlError as error:
            raise CliError(ExitCode.OWNED, f"the supervisor of {run.id} could not be ended: {error}") from None
    while is_held(run.lock):
        _wait(run, end)


def end_is_ordered(run: RunDirectory) -> bool:
    """Whether a person has ordered the end of the attempt that runs, and it is not over yet."""
    if is_at_rest(run):
        return False
    ordered = False
    for record in read_journal(run.journal):
        match record.fact:
            case CommandReceived(verb=verb) if verb in {"stop", "kill"}:
                ordered = True
            case CommandReceived(verb=verb) if verb in {"resume", "restart"}:
                ordered = False
            case AttemptStarted() | StateChanged(state="stopped"):
                ordered = False
            case _:
                pass
    return ordered


def wait_for_end(run: RunDirectory) -> None:
    """Wait until an end that was ordered is over, at most as long as it may take. Raises CliError (exit code 4)."""
    limits = run.load_spec().settings.restart
    end = time.monotonic() + limits.save_wait_s + limits.interrupt_grace_s + limits.terminate_grace_s + BEYOND_S
    while end_is_ordered(run):
        if time.monotonic() >= end:
            raise CliError(ExitCode.OWNED, f"run {run.id} has not ended; see `{typed('status', run.id)}`")
        time.sleep(LOOK_S)


def _wait(run: RunDirectory, end: float) -> None:
    if time.monotonic() >= end:
        raise CliError(ExitCode.OWNED, f"the supervisor of {run.id} does not end; see `{typed('status', run.id)}`")
    time.sleep(POLL_S)
