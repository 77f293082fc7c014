"""A copy of this trainwatch for a machine that has none: a wheel of its own files, in a folder of its own there."""

import base64
import hashlib
import io
import os
import signal
import subprocess
import zipfile
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import trainwatch
from trainwatch import __version__

from ...act.remote import (
    OWN_COPY,
    SSH_FAILED,
    NoSshError,
    in_any_shell,
    remove_there_script,
    ssh_argv,
    unpack_there_script,
    why_failed,
)
from ...bound_process import bound
from ...model.host import Host
from ..errors import CliError, ExitCode
from .run_there import look, sockets

DISTRIBUTION = "trainwatch-tui"
_LEFT_OUT = ("__pycache__",)
_EARLIEST = (1980, 1, 1, 0, 0, 0)
"""The oldest time that a zip file can hold: the same files make the same wheel."""
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


def own_wheel() -> tuple[str, bytes]:
    """The name of the file and its content (PEP 427). Raises CliError if this trainwatch was not installed by pip."""
    try:
        about = distribution(DISTRIBUTION)
        metadata, entries = about.read_text("METADATA"), about.read_text("entry_points.txt")
    except PackageNotFoundError:
        metadata = entries = None
    if metadata is None or entries is None:
        raise CliError(ExitCode.FAILED, "this trainwatch was not installed as a package: install it there by hand")
    info = f"{DISTRIBUTION.replace('-', '_')}-{__version__}.dist-info"
    files = _package_files()
    files[f"{info}/METADATA"] = _with_version(metadata).encode()
    files[f"{info}/entry_points.txt"] = entries.encode()
    files[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: trainwatch\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    record = "".join(f"{name},sha256={_digest(data)},{len(data)}\n" for name, data in files.items())
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name, _EARLIEST)
            entry.external_attr = 0o644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, data)
    return f"{DISTRIBUTION.replace('-', '_')}-{__version__}-py3-none-any.whl", made.getvalue()


def _package_files() -> dict[str, bytes]:
    """Name in the wheel → content, of all files of the package; links of a checkout are followed."""
    top = Path(trainwatch.__path__[0])
    found: dict[str, bytes] = {}
    for folder, below, names in os.walk(top, followlinks=True):
        below[:] = sorted(each for each in below if each not in _LEFT_OUT)
        for name in sorted(names):
            if not name.endswith(".pyc"):
                path = Path(folder) / name
                found[f"trainwatch/{path.relative_to(top).as_posix()}"] = path.read_bytes()
    return found


def _with_version(metadata: str) -> str:
    """The metadata with the version that runs: those of an editable install may be older."""
    head, empty, rest = metadata.partition("\n\n")
    lines = [f"Version: {__version__}" if line.startswith("Version:") else line for line in head.splitlines()]
    return "\n".join(lines) + empty + rest


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
