"""Checks of the host: logout, sleep, tmux, WSL2, and processes that earlier runs left."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from ....act.launch import scope
from ....act.launch.launching import find_attempt, is_alive
from ....act.stop.stopping import members
from ....act.view import tmux
from ....act.view.tmux_calls import TmuxError
from ....model.text.suggestion import typed
from ....sense.host.kernel_log import kernel_tail
from ....store.lock import holder_pid, is_held
from ....store.run_directory import RunDirectory
from ...plan.launch_plan import LaunchPlan
from ...runs.output_claim import lock_rival
from ...runs.output_owner import rival_of
from ..check import Check, Machine, failed, passed, warned

LOGIND = (
    "etc/systemd/logind.conf",
    "run/systemd/logind.conf.d",
    "etc/systemd/logind.conf.d",
    "usr/lib/systemd/logind.conf.d",
)
BROKEN_CHANNEL = "create_process failed -75"
"""From then on every CUDA call fails (microsoft/WSL issue 41062)."""
KERNEL_LINES = 5000
WSL_CONFIGS = "mnt/c/Users/*/.wslconfig"


def check_supervisor(plan: LaunchPlan, machine: Machine) -> Check:
    """No supervisor holds the run yet, and no process of an earlier attempt is left."""
    run = RunDirectory(machine.home / "runs" / plan.spec.id)
    if is_held(run.lock):
        return warned(
            "supervisor",
            f"a supervisor (pid {holder_pid(run.lock) or 'unknown'}) supervises {plan.spec.name} already",
            f"nothing to start; see: {typed('status', plan.spec.id)}",
        )
    for folder in run.attempt_folders():
        target = find_attempt(folder)
        if target is None:
            continue
        if is_alive(target.trainer):
            return warned(
                "supervisor",
                f"attempt {target.number} trains (pid {target.trainer.pid}) without a supervisor",
                f"`{typed('resume', plan.spec.id)}` takes it over; no second trainer is started",
            )
        left = members(target)
        if left:
            named = ", ".join(f"{process.name} (pid {process.pid})" for process in left[:4])
            return failed(
                "supervisor", f"processes of attempt {target.number} are left: {named}", f"end them: kill {left[0].pid}"
            )
    return passed("supervisor", "none is running, and no process of earlier attempts is left")


def check_output_owner(plan: LaunchPlan, machine: Machine) -> Check | None:
    """No other live run writes into the output directory: it would overwrite this run's checkpoints."""
    rival = rival_of(plan.spec, machine.home)
    if rival is not None:
        return failed("output owner", rival, "")
    return None if plan.spec.output_dir is None else passed("output owner", "no other live run writes there")


def check_output_lock(plan: LaunchPlan, machine: Machine) -> Check | None:
    """The output directory has no lock of a run on another host, of which nobody here can tell whether it lives."""
    unclear = lock_rival(plan.spec, machine.home, unclear=True)
    return None if unclear is None else failed("output lock", unclear, "")


def check_tmux(machine: Machine) -> Check:
    """tmux is installed; without it no window shows the trainer."""
    found = shutil.which("tmux", path=machine.environ.get("PATH"))
    if found is None:
        return warned("tmux", "not installed: no window shows the trainer (it runs without one)", "apt install tmux")
    return passed("tmux", found)


def check_old_sessions(plan: LaunchPlan, machine: Machine) -> Check | None:
    """tmux sessions of earlier launches: trainwatch's own, and others of the same name."""
    settings = plan.spec.settings.tmux
    if not settings.enabled or shutil.which("tmux", path=machine.environ.get("PATH")) is None:
        return None
    names = tuple(dict.fromkeys((plan.spec.name, tmux.session_name(plan.spec))))
    try:
        found = tmux.find_sessions(plan.spec, names, machine.environ)
    except TmuxError as error:
        return warned("old sessions", f"{error}; no tmux window will show the run", "see: tmux ls")
    if found.own is not None:
        if is_held(RunDirectory(machine.home / "runs" / plan.spec.id).lock):
            return passed("old sessions", f"{found.own} is the window of the run")
        return warned(
            "old sessions",
            f"{found.own} still shows an earlier launch; a new one will show there",
            f"tmux kill-session -t {found.own}",
        )
    for name in found.named:
        return warned(
            "old sessions",
            f'a tmux session "{name}" exists that trainwatch did not make',
            f"does a training run in it? Then: {typed('adopt', '--session', name, '--output-dir', 'DIR')}",
        )
    return passed("old sessions", "none")


def check_logout(machine: Machine) -> Check:
    """Whether the run survives the end of this login."""
    reason = scope.why_not()
    if reason is None:
        return passed("logout", "each run gets its own systemd scope, and lingering is on")
    user = machine.environ.get("USER") or machine.environ.get("LOGNAME") or str(os.getuid())
    kills = dict(_logind(machine.root)).get("killuserprocesses", "no").lower() in {"yes", "true", "1", "on"}
    lingers = (machine.root / "var/lib/systemd/linger" / user).exists()
    if kills and not lingers and user != "root":
        return failed(
            "logout",
            "KillUserProcesses=yes in logind.conf: logging out ends the training",
            f"loginctl enable-linger {user}",
        )
    if kills and not lingers:
        return warned("logout", "KillUserProcesses=yes in logind.conf", f"loginctl enable-linger {user}, to be safe")
    return passed("logout", "nothing here ends a user's processes at logout")


def check_sleep(machine: Machine) -> Check | None:
    """Whether the machine may go to sleep during the run."""
    if machine.wsl:
        return warned(
            "sleep",
            "Windows decides when this machine sleeps",
            "set sleep to never in the power settings of Windows, or: powercfg /change standby-timeout-ac 0",
        )
    logind = dict(_logind(machine.root))
    if logind.get("idleaction", "ignore").lower() in {"suspend", "hibernate", "hybrid-sleep", "suspend-then-hibernate"}:
        return warned(
            "sleep",
            f"IdleAction={logind['idleaction']} in logind.conf: an idle machine sleeps",
            "sudo systemctl mask sleep.target suspend.target hibernate.target, until the run is over",
        )
    power = machine.root / "sys/class/power_supply"
    if power.is_dir() and any(entry.name.startswith("BAT") for entry in power.iterdir()):
        return warned(
            "sleep",
            "a laptop: closing the lid, or an empty battery, stops the training",
            "keep it open and plugged in, or: systemd-inhibit --what=sleep:handle-lid-switch trainwatch --headless",
        )
    return passed("sleep", "no idle sleep is set in logind.conf")


def check_wsl_idle(machine: Machine) -> Check | None:
    """WSL2 ends its virtual machine soon after the last terminal closes, whatever runs in it."""
    if not machine.wsl:
        return None
    import configparser  # on this kind of machine only

    for path in sorted(machine.root.glob(WSL_CONFIGS)):
        config = configparser.ConfigParser(strict=False, interpolation=None)
        try:
            config.read_string(path.read_text(encoding="utf-8-sig", errors="replace"))
            timeout = config.get("wsl2", "vmidletimeout", fallback=None)
        except (OSError, configparser.Error):
            continue
        if timeout is not None and timeout.strip().startswith("-"):
            return passed("wsl idle", f"vmIdleTimeout={timeout.strip()} in {path}")
    return warned(
        "wsl idle",
        "WSL2 ends its machine about a minute after the last terminal closes",
        "write vmIdleTimeout=-1 under [wsl2] in .wslconfig (your Windows user folder), or keep a terminal open",
    )


def check_gpu_channel(machine: Machine) -> Check | None:
    """WSL2's channel to the GPU: once it is broken, no training starts until Windows restarts the virtual machine."""
    if not machine.wsl:
        return None
    if not (machine.root / "dev/dxg").exists():
        return failed(
            "gpu channel", "/dev/dxg is missing: Windows gives no GPU to this virtual machine",
            "update the Windows NVIDIA driver and WSL (wsl --update), then in PowerShell: wsl --shutdown",
        )  # fmt: skip
    try:
        errors = [line for line in kernel_tail(KERNEL_LINES, str(machine.root / "dev/kmsg")) if BROKEN_CHANNEL in line]
    except OSError as error:
        return passed("gpu channel", f"/dev/dxg exists; the kernel log cannot be read ({error.strerror})")
    if errors:
        return failed(
            "gpu channel",
            f"the kernel log contains: {errors[-1]}",
            "in PowerShell on Windows: wsl --shutdown, then start again",
        )
    return passed("gpu channel", "/dev/dxg exists, and the kernel log contains no error of it")


def _logind(root: Path) -> Iterator[tuple[str, str]]:
    """Settings of logind.conf and its drop-in files; the last one of a name counts."""
    for place in LOGIND:
        path = root / place
        files = sorted(path.glob("*.conf")) if path.is_dir() else [path]
        for file in files:
            try:
                lines = file.read_text(errors="replace").splitlines()
            except OSError:
                continue
            for line in lines:
                key, equals, value = line.strip().partition("=")
                if equals and not key.startswith(("#", ";")):
                    yield key.strip().lower(), value.strip()
