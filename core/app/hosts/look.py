"""What there is on another machine: trainwatch, its version, a Python."""

import signal
import subprocess

from ...act.remote.ssh import SSH_FAILED, NoSshError, ssh_argv, why_failed
from ...act.remote.there import look_there
from ...bound_process import bound
from ...model.remote.host import Host, There
from ..errors import CliError, ExitCode
from .run_there import sockets
from .ssh_output import Said, behind_mark, version_of


def look(host: Host, *, may_ask: bool) -> There:
    """Connect, and look. ``may_ask``: ssh may ask on the terminal of this process. Raises CliError with a sentence."""
    try:
        argv = ssh_argv(host, sockets(), look_there(host), may_ask=may_ask)
    except NoSshError as error:
        raise CliError(ExitCode.FAILED, str(error)) from None
    process = subprocess.Popen(
        bound(argv, at_end=signal.SIGTERM),
        stdin=None if may_ask else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    said = Said(process.stderr, onward=False)
    text = ""
    with process.stdout:
        began = behind_mark(process.stdout)
        if began is not None:
            text = (began[1] + process.stdout.read()).decode(errors="replace")
    code = process.wait()
    if began is None:
        problem = said.text()
        why = why_failed(host, problem) if code == SSH_FAILED else f"{host.name}: {problem.strip() or f'exit {code}'}"
        raise CliError(ExitCode.FAILED, why)
    found = dict(line.partition("=")[::2] for line in text.splitlines())
    return There(
        version=version_of(found.get("version", "")), path=found.get("path", ""), python=found.get("python", "")
    )
