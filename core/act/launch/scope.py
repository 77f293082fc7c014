"""Whether a process can be put where logging out does not end it (``systemd-run --user --scope``).

Only with lingering: without it the user's service manager, and every scope in it, ends with the last session, while a
plain detached process survives that wherever ``KillUserProcesses=no`` (the default nearly everywhere). So a scope
without lingering would make things worse, and is not used.
"""

import functools
import getpass
import os
import secrets
import subprocess
from collections.abc import Mapping
from pathlib import Path

PROBE_TIMEOUT_S = 5.0
LINGER = Path("/var/lib/systemd/linger")


def command(unit: str) -> list[str]:
    """The words to put before a command so that it runs in a scope of its own; ``unit`` names it."""
    readable = "".join(letter if letter.isalnum() and letter.isascii() else "-" for letter in unit)[:80]
    name = f"trainwatch-{readable}-{secrets.token_hex(4)}"
    return ["systemd-run", "--user", "--scope", "--quiet", "--collect", f"--unit={name}", "--"]


@functools.cache
def why_not() -> str | None:
    """None where scopes really work (tried once per process), else a sentence that says what is missing."""
    return probe(os.environ, LINGER)


def probe(environ: Mapping[str, str], linger: Path) -> str | None:
    """Try it. ``linger``: the folder in which systemd notes who lingers. Blocks at most 5 s."""
    if not (environ.get("XDG_RUNTIME_DIR") or environ.get("DBUS_SESSION_BUS_ADDRESS")):
        return "no systemd user session here (XDG_RUNTIME_DIR is not set); the run is detached without a scope"
    try:
        user = getpass.getuser()
    except (OSError, KeyError):
        user = str(os.getuid())
    if not (linger / user).exists():
        return f"lingering is off; `loginctl enable-linger {user}` keeps runs alive after logout on every host"
    try:
        trial = subprocess.run(
            [*command("probe"), "true"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PROBE_TIMEOUT_S,
            check=False,
            env=dict(environ),
        )
    except FileNotFoundError:
        return "systemd-run is not installed; the run is detached without a scope"
    except (OSError, subprocess.SubprocessError) as fault:
        return f"systemd-run does not work here: {fault}"
    if trial.returncode != 0:
        words = trial.stderr.decode("utf-8", "replace").strip().splitlines()
        return f"systemd-run does not work here: {words[-1] if words else f'exit {trial.returncode}'}"
    return None
