"""The argv of ssh: one connection for each host, which all calls share, and what its failures mean.

OpenSSH keeps the connection (``ControlMaster``) for PERSIST_S after its last use; its socket is in a folder that only
this user can enter. The user's ``~/.ssh/config`` applies to everything else: names, users, ports, keys, jump hosts.
"""

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from ...model.host import Host

PERSIST_S = 600
"""Long enough for the next verb to find the connection, short enough that none stays open overnight."""
CONNECT_S = 10
ALIVE_S, ALIVE_COUNT = 15, 3
"""OpenSSH ends a connection without an answer after their product, in seconds."""
SSH_FAILED = 255
"""Exit status of ssh's own failures. trainwatch never exits with it."""


class NoSshError(Exception):
    """The ssh client is not installed."""


def ssh_argv(
    host: Host,
    sockets: Path,
    command: str,
    *,
    terminal: bool = False,
    may_ask: bool = False,
) -> list[str]:
    """argv that runs ``command`` in a shell there. ``sockets``: the folder of the connections' sockets.

    ``terminal``: with a pseudo-terminal there. ``may_ask``: a person can enter a password or confirm a host key. Raises
    NoSshError.
    """
    options = [f"ControlPath={sockets}/%C", "ControlMaster=auto", f"ControlPersist={PERSIST_S}"]
    options += [f"ConnectTimeout={CONNECT_S}", f"ServerAliveInterval={ALIVE_S}", f"ServerAliveCountMax={ALIVE_COUNT}"]
    options += ["ClearAllForwardings=yes", "RemoteCommand=none", "PermitLocalCommand=no", "Compression=yes"]
    options += [] if may_ask else ["BatchMode=yes"]
    return [_ssh(), *_each(options), "-t" if terminal else "-T", "--", host.ssh, command]


def _each(options: Sequence[str]) -> list[str]:
    return [word for option in options for word in ("-o", option)]


def _ssh() -> str:
    found = shutil.which("ssh")
    if found is None:
        raise NoSshError("ssh is not installed here; other hosts are reached by OpenSSH (package openssh-client)")
    return found


_CAUSES = (
    (r"REMOTE HOST IDENTIFICATION HAS CHANGED|Host key for .* has changed", "changed"),
    (r"Host key verification failed|No .* host key is known", "unknown key"),
    (r"Permission denied|Too many authentication failures", "refused"),
    (r"Could not resolve hostname", "name"),
    (r"Connection refused", "closed"),
    (r"Connection timed out|Operation timed out|No route to host|Network is unreachable|banner exchange", "down"),
    (r"Bad configuration option|Bad owner or permissions|terminating, \d+ bad", "configuration"),
    (r"closed by remote host|Broken pipe|Connection reset|Timeout, server .* not responding", "cut"),
    (r"^(?:Shared c|C)onnection to .* closed", "cut"),
)
"""Words of OpenSSH 9 (clientloop.c, sshconnect.c, sshconnect2.c, misc.c) → what they mean."""


NEEDS_A_PERSON = frozenset({"changed", "unknown key", "refused", "name", "configuration"})


def needs_a_person(said: str) -> bool:
    """Whether another attempt fails in the same way. Failed logins every few seconds get an address banned."""
    return _kind_of(said) in NEEDS_A_PERSON


def _kind_of(said: str) -> str:
    return next((kind for pattern, kind in _CAUSES if re.search(pattern, said, re.MULTILINE)), "")


def why_failed(host: Host, said: str) -> str:
    """A sentence: why ssh could not do it, and what to do next. ``said``: its standard error."""
    kind = _kind_of(said)
    by_hand = f"ssh {host.ssh}"
    line = _last_line(said)
    match kind:
        case "changed":
            text = f"its host key has changed; if that is right, `ssh-keygen -R` removes the old one ({line})"
        case "unknown key":
            text = f"its host key is not known here; `{by_hand}` shows it and asks"
        case "refused":
            text = (
                "it refused the login, and nobody could be asked for a password; "
                f"`{by_hand}` has to work, best by a key (`ssh-copy-id {host.ssh}`)"
            )
        case "name":
            text = f"no machine has the name in {host.ssh}: see [hosts.{host.name}] ssh, and ~/.ssh/config"
        case "closed":
            text = "the machine answers, but no ssh server listens there (Connection refused)"
        case "down":
            text = f"no answer: it is down, or not reachable from here ({line})"
        case "configuration":
            text = f"ssh does not accept its configuration ({line})"
        case "cut":
            text = f"the connection was cut; what runs there goes on ({line})"
        case _:
            text = line or f"ssh ended without a word; try `{by_hand} true`"
    return f"{host.name}: {text}"


def _last_line(said: str) -> str:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return lines[-1] if lines else ""
