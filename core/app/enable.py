"""Supervision that comes back after a reboot: a unit of systemd's user manager, or the line for cron or Windows.

Nothing of the user's is written over: a unit file of another make is refused, a crontab is never edited.
"""

import contextlib
import os
import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from ..bound_process import NoAnswerError, answer
from ..model.text import printable
from ..sense.host.host_sensor import is_wsl
from ..store.home import write_atomically
from ..store.run_directory import RunDirectory
from .errors import CliError, ExitCode, file_errors

MARK = "# Written by `trainwatch enable` for run "
PASSED_ON = (
    "PATH", "LANG", "LC_ALL", "VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV", "PYTHONPATH", "LD_LIBRARY_PATH",
    "CUDA_HOME", "CUDA_VISIBLE_DEVICES", "HF_HOME", "HF_HUB_CACHE", "XDG_CACHE_HOME", "TMPDIR",
)  # fmt: skip
"""Variables of this shell that the trainer will need then, too. Others belong into ``[run] env``: a unit file is no
place for secrets."""
WATCHDOG_S = 60
SYSTEMCTL_S = 10.0


class Enabling(NamedTuple):
    """``unit``: the file's text; ``cron``, ``windows``: a line for those (None: not on this machine).

    ``mark``: the first line of the unit, by which it is known as ours.
    """

    mark: str
    path: Path
    unit: str
    cron: str
    windows: str | None = None


def enabling_of(run: RunDirectory, environ: Mapping[str, str] = os.environ) -> Enabling:
    """What would be written for a run. Writes nothing."""
    command = [sys.executable, "-P", "-m", "trainwatch", "supervise", run.id]
    name = f"trainwatch-{run.id}"
    variables = {"TRAINWATCH_HOME": str(run.path.parents[1])}
    variables |= {each: environ[each] for each in PASSED_ON if environ.get(each)}
    lines = "".join(f"Environment={_quoted(f'{each}={value}')}\n" for each, value in variables.items())
    unit = f"""{MARK}{run.id}
# To undo: systemctl --user disable {name}.service; rm this file
[Unit]
Description=trainwatch supervises {printable(run.load_spec().name).replace("%", "%%")}

[Service]
Type=notify
NotifyAccess=main
# A supervisor that gives no sign of life for {WATCHDOG_S} s is ended and replaced; the trainer goes on.
WatchdogSec={WATCHDOG_S}
# Given up (1), stopped by a person (6), not to be started (2, 3), supervised already (4): not started again.
RestartPreventExitStatus=1 2 3 4 6
KillMode=process
Restart=on-failure
RestartSec=10
{lines}ExecStart={" ".join(_quoted(word) for word in command)}

[Install]
WantedBy=default.target
"""
    assignments = " ".join(f"{each}={shlex.quote(value)}" for each, value in variables.items())
    inner = f"env {assignments} {shlex.join(command)} --detach"
    config = environ.get("XDG_CONFIG_HOME", "")
    base = Path(config) if Path(config).is_absolute() else Path(environ.get("HOME") or Path.home()) / ".config"
    path, windows = base / "systemd" / "user" / f"{name}.service", None
    if is_wsl():
        distribution, user = environ.get("WSL_DISTRO_NAME", "Ubuntu"), environ.get("USER", "root")
        start = f"wsl.exe -d {distribution} -u {user} -- {inner}".replace('"', '\\"')
        windows = f'schtasks /Create /TN {name} /SC ONLOGON /TR "{start}"'
    return Enabling(f"{MARK}{run.id}\n", path, unit, "@reboot " + inner.replace("%", "\\%"), windows)


def write_unit(found: Enabling) -> bool:
    """Write the unit file. Returns False if it is there already. Raises CliError if it is another's."""
    with contextlib.suppress(FileNotFoundError):
        there = found.path.read_text(encoding="utf-8", errors="replace")
        if there == found.unit:
            return False
        if not there.startswith(found.mark):
            raise CliError(
                ExitCode.USAGE, f"{found.path} exists and was not written by `trainwatch enable`; nothing was changed"
            )
    with file_errors(found.path):
        found.path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(found.path, found.unit.encode("utf-8", "surrogateescape"))
    return True


def switch_on(found: Enabling) -> str | None:
    """Let systemd start the unit at the next boot. Returns why that did not work, None if it did."""
    program = shutil.which("systemctl")
    if program is None:
        return "systemctl is not installed"
    for words in (["daemon-reload"], ["enable", found.path.name]):
        try:
            answer([program, "--user", *words], SYSTEMCTL_S)
        except NoAnswerError as error:
            said = (error.said or error.printed).strip().splitlines()
            return f"systemctl --user {words[0]}: {said[-1] if said else error}"
    return None


def _quoted(word: str) -> str:
    """A word for a unit file: ``%`` and ``$`` have a meaning there."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$").replace("\n", "\\n")
    return f'"{escaped}"'
