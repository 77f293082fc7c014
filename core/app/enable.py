"""Supervision that comes back after a reboot: a unit of systemd's user manager, or the line for cron or Windows.

Nothing of the user's is written over: a unit file of another make is refused, a crontab is never edited.
"""

import contextlib
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from ..bound_process import bound
from ..model.run import RunSpec
from ..model.text import printable
from ..sense.host.host_sensor import is_wsl
from ..store.run_directory import RunDirectory
from .errors import CliError, ExitCode

MARK = "# Written by `trainwatch enable` for run "
QUEUE_MARK = "# Written by `trainwatch queue enable`"
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
    windows: str | None


def enabling_of(run: RunDirectory, environ: Mapping[str, str] = os.environ) -> Enabling:
    """What would be written for a run. Writes nothing."""
    spec = run.load_spec()
    command = [sys.executable, "-P", "-m", "trainwatch", "supervise", run.id]
    variables = {"TRAINWATCH_HOME": str(run.path.parents[1])}
    variables |= {name: environ[name] for name in PASSED_ON if environ.get(name)}
    assignments = " ".join(f"{name}={shlex.quote(value)}" for name, value in variables.items())
    started = f"{shlex.join(command)} --detach"
    windows = None
    if is_wsl():
        distribution, user = environ.get("WSL_DISTRO_NAME", "Ubuntu"), environ.get("USER", "root")
        inner = f"env {assignments} {started}".replace('"', '\\"')
        windows = (
            f'schtasks /Create /TN trainwatch-{run.id} /SC ONLOGON /TR "wsl.exe -d {distribution} -u {user} -- {inner}"'
        )
    return Enabling(
        mark=f"{MARK}{run.id}\n",
        path=_folder(environ) / f"trainwatch-{run.id}.service",
        unit=_unit(run, spec, command, variables),
        cron=f"@reboot env {assignments} {started}".replace("%", "\\%"),
        windows=windows,
    )


def enabling_of_queue(home: Path, environ: Mapping[str, str] = os.environ) -> Enabling:
    """What would be written for the queue of a state folder. Writes nothing."""
    command = [sys.executable, "-P", "-m", "trainwatch", "queue", "work"]
    variables = {"TRAINWATCH_HOME": str(home)}
    variables |= {name: environ[name] for name in PASSED_ON if environ.get(name)}
    variables.pop("CUDA_VISIBLE_DEVICES", None)
    lines = "".join(f"Environment={_quoted(f'{name}={value}')}\n" for name, value in variables.items())
    assignments = " ".join(f"{name}={shlex.quote(value)}" for name, value in variables.items())
    name = "trainwatch-queue.service"
    unit = f"""{QUEUE_MARK}
# To undo: systemctl --user disable {name}; rm this file
[Unit]
Description=trainwatch starts queued runs

[Service]
Type=exec
# The runs that it started have supervisors of their own and go on.
KillMode=process
Restart=on-failure
RestartSec=10
# Another process starts them already (4), or the queue cannot be read (2): not started again.
RestartPreventExitStatus=2 4
{lines}ExecStart={" ".join(_quoted(word) for word in command)}

[Install]
WantedBy=default.target
"""
    cron = f"@reboot env {assignments} {shlex.join(command)} --detach".replace("%", "\\%")
    return Enabling(mark=f"{QUEUE_MARK}\n", path=_folder(environ) / name, unit=unit, cron=cron, windows=None)


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
    try:
        found.path.parent.mkdir(parents=True, exist_ok=True)
        temporary = found.path.with_name(f".{found.path.name}.{os.getpid()}")
        temporary.write_text(found.unit, encoding="utf-8", errors="surrogateescape")
        temporary.replace(found.path)
    except OSError as error:
        raise CliError(ExitCode.FAILED, f"{found.path}: {error.strerror or error}; nothing was written") from None
    return True


def switch_on(found: Enabling) -> str | None:
    """Let systemd start the unit at the next boot. Returns why that did not work, None if it did."""
    program = shutil.which("systemctl")
    if program is None:
        return "systemctl is not installed"
    for words in (["daemon-reload"], ["enable", found.path.name]):
        try:
            done = subprocess.run(
                bound([program, "--user", *words]),
                capture_output=True,
                text=True,
                timeout=SYSTEMCTL_S,
                check=False,
                stdin=subprocess.DEVNULL,
            )
        except (OSError, subprocess.SubprocessError) as error:
            return f"systemctl --user {words[0]}: {error}"
        if done.returncode != 0:
            said = (done.stderr or done.stdout).strip().splitlines()
            return f"systemctl --user {words[0]}: {said[-1] if said else f'exit code {done.returncode}'}"
    return None


def _folder(environ: Mapping[str, str]) -> Path:
    config = environ.get("XDG_CONFIG_HOME")
    base = (
        Path(config) if config and Path(config).is_absolute() else Path(environ.get("HOME") or Path.home()) / ".config"
    )
    return base / "systemd" / "user"


def _unit(run: RunDirectory, spec: RunSpec, command: list[str], variables: Mapping[str, str]) -> str:
    lines = "".join(f"Environment={_quoted(f'{name}={value}')}\n" for name, value in variables.items())
    name = printable(spec.name).replace("%", "%%")
    return f"""{MARK}{run.id}
# To undo: systemctl --user disable {_folder_name(run)}; rm this file
[Unit]
Description=trainwatch supervises {name}

[Service]
Type=notify
NotifyAccess=main
# A supervisor that gives no sign of life for {WATCHDOG_S} s is ended and replaced; the trainer goes on.
WatchdogSec={WATCHDOG_S}
KillMode=process
Restart=on-failure
RestartSec=10
# Given up or stopped by a person (1), not to be started (2, 3), supervised already (4): not started again.
RestartPreventExitStatus=1 2 3 4
{lines}ExecStart={" ".join(_quoted(word) for word in command)}

[Install]
WantedBy=default.target
"""


def _folder_name(run: RunDirectory) -> str:
    return f"trainwatch-{run.id}.service"


def _quoted(word: str) -> str:
    """A word for a unit file: ``%`` and ``$`` have a meaning there."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$").replace("\n", "\\n")
    return f'"{escaped}"'
