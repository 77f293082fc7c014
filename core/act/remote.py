"""Calls on another machine through ssh."""

import base64
import re
import shlex
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..model.run import Host

# The argv of ssh: one connection for each host, which all calls share, and what its failures mean.
#
# OpenSSH keeps the connection (``ControlMaster``) for PERSIST_S after its last use; its socket is in a folder that
# only this user can enter. The user's ``~/.ssh/config`` applies to everything else: names, users, ports, keys, jump
# hosts.

PERSIST_S = 600
"""Long enough for the next verb to find the connection, short enough that none stays open overnight."""
CONNECT_S = 10
ALIVE_S, ALIVE_COUNT = 15, 3
"""OpenSSH ends a connection without an answer after their product, in seconds."""
SSH_FAILED = 255
"""Exit status of ssh's own failures. trainwatch never exits with it."""


class NoSshError(Exception):
    """The ssh client is not installed."""


def ssh_argv(host: Host, sockets: Path, command: str, *, terminal: bool = False, may_ask: bool = False) -> list[str]:
    """argv that runs ``command`` in a shell there. ``sockets``: the folder of the connections' sockets.

    ``terminal``: with a pseudo-terminal there. ``may_ask``: a person can enter a password or confirm a host key. Raises
    NoSshError.
    """
    options = [f"ControlPath={sockets}/%C", "ControlMaster=auto", f"ControlPersist={PERSIST_S}"]
    options += [f"ConnectTimeout={CONNECT_S}", f"ServerAliveInterval={ALIVE_S}", f"ServerAliveCountMax={ALIVE_COUNT}"]
    options += ["ClearAllForwardings=yes", "RemoteCommand=none", "PermitLocalCommand=no", "Compression=yes"]
    options += [] if may_ask else ["BatchMode=yes"]
    ssh = shutil.which("ssh")
    if ssh is None:
        raise NoSshError("ssh is not installed here; other hosts are reached by OpenSSH (package openssh-client)")
    return [
        ssh,
        *(word for option in options for word in ("-o", option)),
        "-t" if terminal else "-T",
        "--",
        host.ssh,
        command,
    ]


_CAUSES = (
    (r"REMOTE HOST IDENTIFICATION HAS CHANGED|Host key for .* has changed", True,
     "its host key has changed; if that is right, `ssh-keygen -R` removes the old one ({line})"),
    (r"Host key verification failed|No .* host key is known", True,
     "its host key is not known here; `ssh {ssh}` shows it and asks"),
    (r"Permission denied|Too many authentication failures", True,
     ("it refused the login, and nobody could be asked for a password; `ssh {ssh}` has to work, best by a key "
      "(`ssh-copy-id {ssh}`)")),
    (r"Could not resolve hostname", True,
     "no machine has the name in {ssh}: see [hosts.{name}] ssh, and ~/.ssh/config"),
    (r"Connection refused", False,
     "the machine answers, but no ssh server listens there (Connection refused)"),
    (r"Connection timed out|Operation timed out|No route to host|Network is unreachable|banner exchange", False,
     "no answer: it is down, or not reachable from here ({line})"),
    (r"Bad configuration option|Bad owner or permissions|terminating, \d+ bad", True,
     "ssh does not accept its configuration ({line})"),
    ((r"closed by remote host|Broken pipe|Connection reset|Timeout, server .* not responding"
      r"|^(?:Shared c|C)onnection to .* closed"), False,
     "the connection was cut; what runs there goes on ({line})"),
)  # fmt: skip
"""Words of OpenSSH 9 (clientloop.c, sshconnect.c, sshconnect2.c, misc.c), whether a person has to do something first,
and what they mean."""


def _cause_of(said: str) -> tuple[str, bool, str] | None:
    return next((cause for cause in _CAUSES if re.search(cause[0], said, re.MULTILINE)), None)


def needs_a_person(said: str) -> bool:
    """Whether another attempt fails in the same way. Failed logins every few seconds get an address banned."""
    cause = _cause_of(said)
    return cause is not None and cause[1]


def why_failed(host: Host, said: str) -> str:
    """A sentence: why ssh could not do it, and what to do next. ``said``: its standard error."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    line, cause = lines[-1] if lines else "", _cause_of(said)
    if cause is None:
        return f"{host.name}: {line or f'ssh ended without a word; try `ssh {host.ssh} true`'}"
    return f"{host.name}: {cause[2].format(ssh=host.ssh, name=host.name, line=line)}"


# The command that ssh runs on the other machine: finds trainwatch there and runs it with the words as they are.
#
# The words are quoted for a POSIX shell and sent as base64, so the login shell there (bash, zsh, fish, csh) need not
# understand them: what it parses is one word in single quotes without any character that is special to these shells.

MARK = "\x1etrainwatch "
"""Begins the line that is printed before trainwatch's own output. Output before it comes from the shell's start-up
files."""
MISSING, NO_FOLDER = 127, 126
_FIND = """
found=
for each in "$(command -v trainwatch)" "$HOME/.local/bin/trainwatch"; do
  if [ -z "$found" ] && [ -x "$each" ]; then found=$each; fi
done
"""


def command_there(host: Host, words: Sequence[str], *, terminal: Mapping[str, str] | None = None) -> str:
    """The command for ssh. A line with MARK and the version there comes first on standard output.

    ``terminal``: it runs on a terminal, without that line; these variables describe the terminal. Exit status MISSING:
    no trainwatch there; NO_FOLDER: the host's folder is not there.
    """
    marked = terminal is None
    folder = f"cd -- {_path(host.folder)} || exit {NO_FOLDER}\n" if host.folder else ""
    if host.command:
        find, call = "", host.command
    else:
        nothing = f"printf '{_escaped(MARK)}\\n'\n" if marked else ""
        find = f'{_FIND}if [ -z "$found" ]; then\n{nothing}exit {MISSING}\nfi\n'
        call = '"$found"'
    told = f"printf '{_escaped(MARK)}%s\\n' \"$({call} --version 2>/dev/null </dev/null)\"\n" if marked else ""
    told_there = {"TRAINWATCH_ON": host.name, **(terminal or {})}
    named = "".join(f"{name}={shlex.quote(value)}\nexport {name}\n" for name, value in told_there.items())
    return in_any_shell(f"{named}{folder}{find}{told}exec {call} {shlex.join(words)}")


def in_any_shell(script: str) -> str:
    """A script for sh as a command that every login shell passes on unchanged."""
    packed = base64.b64encode(script.encode("utf-8", "surrogateescape")).decode()
    return f"exec sh -c 'eval \"$(printf %s {packed} | base64 -d)\"' trainwatch"


def look_there(host: Host) -> str:
    """A command that prints a line with MARK, then ``version=`` and ``path=`` lines."""
    if host.command:
        find = f"found={shlex.quote(host.command)}\nversion=$({host.command} --version 2>/dev/null </dev/null)\n"
    else:
        find = f'{_FIND}version=\nif [ -n "$found" ]; then version=$("$found" --version 2>/dev/null </dev/null); fi\n'
    return in_any_shell(f'{find}printf \'{_escaped(MARK)}\\nversion=%s\\npath=%s\\n\' "$version" "$found"')


def _escaped(text: str) -> str:
    return text.replace("\x1e", "\\036")


def _path(folder: str) -> str:
    """A path as a word of a shell; ``~/`` at its beginning is the home folder there."""
    if folder == "~":
        return '"$HOME"'
    if folder.startswith("~/"):
        return f'"$HOME"/{shlex.quote(folder[2:])}'
    return shlex.quote(folder)
