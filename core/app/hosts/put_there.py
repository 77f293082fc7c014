"""A copy of this trainwatch on another machine: in a folder of its own there, and nowhere else."""

import signal
import subprocess

from trainwatch import __version__

from ...act.remote.ssh import SSH_FAILED, NoSshError, ssh_argv, why_failed
from ...act.remote.there import OWN_COPY, in_any_shell, remove_there_script, unpack_there_script
from ...bound_process import bound
from ...model.remote.host import Host
from ..errors import CliError, ExitCode
from .look import look
from .own_wheel import own_wheel
from .run_there import sockets

NO_VENV, NO_PIP, NO_ROOM = 64, 65, 66
"""Exit status of the script there, with what it could not do."""
WHY = {
    NO_VENV: "its Python cannot make a virtual environment (on Debian and Ubuntu: apt install python3-venv)",
    NO_PIP: "pip there could not install it",
    NO_ROOM: "the folder there cannot be written",
}


def why_not(host: Host, *, may_ask: bool) -> str:
    """What would be put there, as a question. Raises CliError if it cannot be put there."""
    if host.command:
        raise CliError(ExitCode.USAGE, f"{host.name}: [hosts.{host.name}] command says which trainwatch is used there")
    found = look(host, may_ask=may_ask)
    if not found.python:
        raise CliError(ExitCode.FAILED, f"{host.name}: it needs Python 3.11 or newer, and none is in PATH there")
    there = f"; trainwatch {found.version} is there ({found.path})" if found.version else ""
    return (
        f"put trainwatch {__version__} into {shown_folder()} on {host.name}, with {found.python}; "
        f"pip loads what it needs{there}"
    )


def shown_folder() -> str:
    """The folder there, as a person would write it."""
    return OWN_COPY.replace("${XDG_DATA_HOME:-$HOME/.local/share}", "~/.local/share")


def put_there(host: Host, *, may_ask: bool) -> str:
    """Put it there, and return what is there then. Raises CliError with a sentence."""
    name, wheel = own_wheel()
    script = unpack_there_script(name, __version__, (NO_VENV, NO_PIP, NO_ROOM))
    code, out, said = _done_there(host, script, wheel, may_ask=may_ask)
    if code in WHY:
        last = " ".join((said.strip() or out.strip()).splitlines()[-1:])
        raise CliError(ExitCode.FAILED, f"{host.name}: {WHY[code]}" + (f": {last}" if last else ""))
    if code == SSH_FAILED:
        raise CliError(ExitCode.FAILED, why_failed(host, said))
    found = look(host, may_ask=False)
    if code or found.version != __version__:
        raise CliError(ExitCode.FAILED, f"{host.name}: it does not start there: {said.strip() or f'exit code {code}'}")
    return f"{host.name}: trainwatch {found.version} is in {found.path}"


def remove_there(host: Host, *, may_ask: bool) -> str:
    """Remove the folder there. Raises CliError with a sentence."""
    code, _, said = _done_there(host, remove_there_script(), b"", may_ask=may_ask)
    if code:
        why = why_failed(host, said) if code == SSH_FAILED else f"{host.name}: {said.strip()}"
        raise CliError(ExitCode.FAILED, why)
    return f"{host.name}: {shown_folder()} is removed"


def _done_there(host: Host, script: str, given: bytes, *, may_ask: bool) -> tuple[int, str, str]:
    try:
        argv = ssh_argv(host, sockets(), in_any_shell(script), may_ask=may_ask)
    except NoSshError as error:
        raise CliError(ExitCode.FAILED, str(error)) from None
    done = subprocess.run(bound(argv, at_end=signal.SIGTERM), input=given, capture_output=True, check=False)
    return done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
