"""The supervisor of a run that is over ends, so that the run can go on in another way."""

import time

from ...model.control_messages import Request
from ...model.observation import Command
from ...model.text.suggestion import typed
from ...store.control.control_client import ControlError, NoSupervisor, SupervisorSilent, send
from ...store.lock import is_held
from ...store.run_directory import RunDirectory
from ..errors import CliError, ExitCode

END_PATIENCE_S = 10.0
POLL_S = 0.05


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


def _wait(run: RunDirectory, end: float) -> None:
    if time.monotonic() >= end:
        raise CliError(ExitCode.OWNED, f"the supervisor of {run.id} does not end; see `{typed('status', run.id)}`")
    time.sleep(POLL_S)
