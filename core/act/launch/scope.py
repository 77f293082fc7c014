"""A systemd scope that keeps a process running after logout (``systemd-run --user --scope``).

It is used only with lingering. Without lingering the user's service manager and its scopes end with the last session,
but a detached process without a scope survives if ``KillUserProcesses=no``, the default of most distributions.
"""

import functools
import getpass
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from ...bound_process import bound

PROBE_TIMEOUT_S = 5.0
LINGER = Path("/var/lib/systemd/linger")


def command(unit: str) -> list[str]:
    """Prefix of a command that runs it in a scope of its own, which is named after ``unit``."""
    readable = "".join(letter if letter.isalnum() and letter.isascii() else "-" for letter in unit)[:80]
    name = f"trainwatch-{readable}-{os.urandom(4).hex()}"
    return ["systemd-run", "--user", "--scope", "--quiet", "--collect", f"--unit={name}", "--"]


@functools.cache
def why_not() -> str | None:
    """None if scopes work (probed once per process), else a sentence about what is missing."""
    return probe(os.environ, LINGER)


def probe(environ: Mapping[str, str], linger: Path) -> str | None:
    """Run a command in a scope. ``linger``: folder with a file for each user who lingers. Blocks at most 5 s."""
    if not (environ.get("XDG_RUNTIME_DIR") or environ.get("DBUS_SESSION_BUS_ADDRESS")):
        return "there is no systemd user session (XDG_RUNTIME_DIR is not set); the run is detached without a scope"
    try:
        user = getpass.getuser()
    except (OSError, KeyError):
        user = str(os.getuid())
    if not (linger / user).exists():
        return f"lingering is off; `loginctl enable-linger {user}` keeps runs alive after logout on every host"
    try:
        trial = subprocess.run(
            bound([*command("probe"), "true"], path=environ.get("PATH")),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PROBE_TIMEOUT_S,
            check=False,
            env=dict(environ),
        )
    except FileNotFoundError:
        return "systemd-run is not installed; the run is detached without a scope"
    except (OSError, subprocess.SubprocessError) as fault:
        return f"systemd-run fails: {fault}"
    if trial.returncode != 0:
        words = trial.stderr.decode("utf-8", "replace").strip().splitlines()
        return f"systemd-run fails: {words[-1] if words else f'exit {trial.returncode}'}"
    return None
