"""Running a verb on another machine: its words, its output and its exit status are passed on as they are."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO

from trainwatch import __version__

from ...act.remote.ssh import SSH_FAILED, NoSshError, ssh_argv, why_failed
from ...act.remote.there import MISSING, NO_FOLDER, command_there
from ...bound_process import bound
from ...model.remote.host import Host
from ...model.text.suggestion import typed
from ...store.control.control_client import socket_folder
from ..errors import CliError, ExitCode
from .ssh_output import Said, behind_mark

SOCKET_NAME_BYTES = 40 + 1 + 16
"""``%C`` of ssh_config(5), and what ssh adds while it makes the socket (mux.c)."""
ASKING = frozenset({"adopt", "checkpoints", "forget", "kill", "rehearse", "resume", "restart", "run", "stop", "trial"})
"""Verbs that ask a question on a terminal."""
ON_TERMINAL = frozenset({"attach"})
"""Verbs that are of no use without one."""


def sockets() -> Path:
    """The folder of the connections' sockets."""
    return socket_folder(os.environ, SOCKET_NAME_BYTES)


def needs_terminal(words: Sequence[str]) -> bool:
    """Whether the verb there asks a person, or shows a terminal."""
    verb = next((word for word in words if not word.startswith("-")), "")
    if verb in ON_TERMINAL:
        return True
    own = words[: words.index("--")] if "--" in words else words
    return verb in ASKING and not {"--json", "--yes", "-y", "--help", "-h", "--dry-run"} & set(own)


def detached(words: Sequence[str]) -> list[str]:
    """The words; ``run`` and ``adopt`` with --detach, since what runs in the foreground there hangs on this line."""
    end = words.index("--") if "--" in words else len(words)
    own = words[:end]
    foreground = {"--detach", "--headless", "--dry-run", "--help", "-h"}
    if own and own[0] in {"run", "adopt"} and not foreground & set(own):
        return [*own, "--detach", *words[end:]]
    return list(words)


def run_there(host: Host, words: Sequence[str], *, terminal: bool, warn: Callable[[str], None]) -> int:
    """Run ``trainwatch WORDS`` on the host, and return its exit code.

    ``terminal``: this process has one, so a person can be asked, here by ssh and there by the verb. Raises CliError
    if it could not be run there, or if the connection was cut.
    """
    shown = terminal and needs_terminal(words)
    try:
        argv = ssh_argv(host, sockets(), command_there(host, words, marked=not shown), terminal=shown, may_ask=terminal)
    except NoSshError as error:
        raise CliError(ExitCode.FAILED, str(error)) from None
    # At the end of this process ssh gets SIGTERM, which closes what runs over the connection and not the connection.
    process = subprocess.Popen(
        bound(argv, at_end=signal.SIGTERM),
        stdin=None,
        stdout=None if shown else subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    said = Said(process.stderr, onward=True)
    version: str | None = None
    try:
        if process.stdout is not None:
            version = _pass_on(process.stdout, host, warn)
        code = process.wait()
    except BaseException:
        process.terminate()
        process.wait()
        raise
    finally:
        if process.stdout is not None:
            process.stdout.close()
    text = said.text()
    if code == SSH_FAILED:
        raise CliError(ExitCode.FAILED, _lost(host, text, began=version is not None))
    if code == MISSING and not version:
        raise CliError(ExitCode.FAILED, missing_there(host))
    if code == NO_FOLDER and version is None and host.folder:
        raise CliError(
            ExitCode.FAILED, f"{host.name}: the folder {host.folder} is not there ([hosts.{host.name}] folder)"
        )
    return code


def _lost(host: Host, said: str, *, began: bool) -> str:
    if not began:
        return why_failed(host, said)
    return f"{host.name}: the connection was cut; what was begun there goes on, its outcome is not known here"


def missing_there(host: Host) -> str:
    if host.command:
        return f"{host.name}: `{host.command}` is not there, or no trainwatch ([hosts.{host.name}] command)"
    install = typed("hosts", "install", host.name)
    return (
        f"{host.name}: no trainwatch there (looked in PATH and ~/.local/bin); `{install}` puts a copy of this one "
        f"into a folder of its own there, or name it by [hosts.{host.name}] command"
    )


def _pass_on(stream: IO[bytes], host: Host, warn: Callable[[str], None]) -> str | None:
    """Copy standard output behind the line with MARK. Returns the version that it names; None: the line never came."""
    began = behind_mark(stream)
    if began is None:
        return None
    version, rest = began
    if version and version != __version__:
        warn(f"{host.name} has trainwatch {version}, this machine {__version__}: options and output are those of there")
    _write(rest)
    while got := os.read(stream.fileno(), 65_536):
        _write(got)
    return version


def _write(data: bytes) -> None:
    """To standard output as it is: the other side has redacted it, and JSON stays as it was."""
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
