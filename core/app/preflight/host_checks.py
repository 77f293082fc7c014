"""Checks of the host: logout, sleep, tmux, WSL2, and processes that earlier runs left."""

import errno
import math
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from ...act.launch import launching
from ...act.stopping import members
from ...act.view import tmux
from ...checkpoints.inspection import verify
from ...model import text
from ...model.checkpoint import Checkpoint
from ...model.run import RunSpec, need_bytes, place_of
from ...model.text import typed
from ...mounts import filesystem_type, is_network_filesystem
from ...processes import file_text, is_alive
from ...sense.files.checkpoint_scan import disk_bytes
from ...sense.host.kernel_log import kernel_tail
from ...store.lock import holder_pid, is_held
from ..plan.launch_plan import LaunchPlan
from ..runs.ended_attempt import attempts_of
from ..runs.output_claim import lock_rival, rival_of
from ..runs.output_folder import list_run_checkpoints, origins
from .check import GB, Check, Machine, existing, failed, passed, warned

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
    run = machine.run(plan.spec)
    if is_held(run.lock):
        found = f"a supervisor (pid {holder_pid(run.lock) or 'unknown'}) supervises {plan.spec.name} already"
        return warned(found, f"nothing to start; see: {typed('status', plan.spec.id)}")
    for target in attempts_of(run):
        if is_alive(target.trainer):
            found = f"attempt {target.number} trains (pid {target.trainer.pid}) without a supervisor"
            return warned(found, f"`{typed('resume', plan.spec.id)}` takes it over; no second trainer is started")
        if left := members(target):
            named = ", ".join(f"{process.name} (pid {process.pid})" for process in left[:4])
            return failed(f"processes of attempt {target.number} are left: {named}", f"end them: kill {left[0].pid}")
    return passed("none is running, and no process of earlier attempts is left")


def check_output_owner(plan: LaunchPlan, machine: Machine) -> Check | None:
    """No other live run writes into the output directory: it would overwrite this run's checkpoints."""
    if (rival := rival_of(plan.spec, machine.home)) is not None:
        return failed(rival, "")
    return None if plan.spec.output_dir is None else passed("no other live run writes there")


def check_output_lock(plan: LaunchPlan, machine: Machine) -> Check | None:
    """The output directory has no lock of a run on another host, of which nobody here can tell whether it lives."""
    unclear = lock_rival(plan.spec, machine.home, unclear=True)
    return None if unclear is None else failed(unclear, "")


def check_tmux(machine: Machine) -> Check:
    """tmux is installed; without it no window shows the trainer."""
    found = shutil.which("tmux", path=machine.environ.get("PATH"))
    if found is None:
        return warned("not installed: no window shows the trainer (it runs without one)", "apt install tmux")
    return passed(found)


def check_old_sessions(plan: LaunchPlan, machine: Machine) -> Check | None:
    """tmux sessions of earlier launches: trainwatch's own, and others of the same name."""
    settings = plan.spec.settings.tmux
    if not settings.enabled or shutil.which("tmux", path=machine.environ.get("PATH")) is None:
        return None
    names = tuple(dict.fromkeys((plan.spec.name, tmux.session_name(plan.spec))))
    try:
        found = tmux.find_sessions(plan.spec, names, machine.environ)
    except tmux.TmuxError as error:
        return warned(f"{error}; no tmux window will show the run", "see: tmux ls")
    if found.own is not None:
        if is_held(machine.run(plan.spec).lock):
            return passed(f"{found.own} is the window of the run")
        why = f"{found.own} still shows an earlier launch; a new one will show there"
        return warned(why, f"tmux kill-session -t {found.own}")
    for name in found.users:
        take = typed("adopt", "--session", name, "--output-dir", "DIR")
        why = f'a tmux session "{name}" exists that trainwatch did not make'
        return warned(why, f"does a training run in it? Then: {take}")
    return passed("none")


def check_logout(machine: Machine) -> Check:
    if launching.why_not() is None:
        return passed("each run gets its own systemd scope, and lingering is on")
    user = machine.environ.get("USER") or machine.environ.get("LOGNAME") or str(os.getuid())
    kills = dict(_logind(machine.root)).get("killuserprocesses", "no").lower() in {"yes", "true", "1", "on"}
    if not kills or (machine.root / "var/lib/systemd/linger" / user).exists():
        return passed("nothing here ends a user's processes at logout")
    found, remedy = "KillUserProcesses=yes in logind.conf", f"loginctl enable-linger {user}"
    if user == "root":
        return warned(found, f"{remedy}, to be safe")
    return failed(f"{found}: logging out ends the training", remedy)


def check_sleep(machine: Machine) -> Check | None:
    if machine.wsl:
        return warned(
            "Windows decides when this machine sleeps",
            "set sleep to never in the power settings of Windows, or: powercfg /change standby-timeout-ac 0",
        )
    logind = dict(_logind(machine.root))
    if logind.get("idleaction", "ignore").lower() in {"suspend", "hibernate", "hybrid-sleep", "suspend-then-hibernate"}:
        return warned(
            f"IdleAction={logind['idleaction']} in logind.conf: an idle machine sleeps",
            "sudo systemctl mask sleep.target suspend.target hibernate.target, until the run is over",
        )
    power = machine.root / "sys/class/power_supply"
    if power.is_dir() and any(entry.name.startswith("BAT") for entry in power.iterdir()):
        return warned(
            "a laptop: closing the lid, or an empty battery, stops the training",
            "keep it open and plugged in, or: systemd-inhibit --what=sleep:handle-lid-switch trainwatch --headless",
        )
    return passed("no idle sleep is set in logind.conf")


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
            return passed(f"vmIdleTimeout={timeout.strip()} in {path}")
    return warned(
        "WSL2 ends its machine about a minute after the last terminal closes",
        "write vmIdleTimeout=-1 under [wsl2] in .wslconfig (your Windows user folder), or keep a terminal open",
    )


def check_gpu_channel(machine: Machine) -> Check | None:
    """WSL2's channel to the GPU: once it is broken, no training starts until Windows restarts the virtual machine."""
    if not machine.wsl:
        return None
    if not (machine.root / "dev/dxg").exists():
        found = "/dev/dxg is missing: Windows gives no GPU to this virtual machine"
        return failed(
            found, "update the Windows NVIDIA driver and WSL (wsl --update), then in PowerShell: wsl --shutdown"
        )
    try:
        errors = [line for line in kernel_tail(KERNEL_LINES, str(machine.root / "dev/kmsg")) if BROKEN_CHANNEL in line]
    except OSError as error:
        return passed(f"/dev/dxg exists; the kernel log cannot be read ({error.strerror})")
    if errors:
        found = f"the kernel log contains: {errors[-1]}"
        return failed(found, "in PowerShell on Windows: wsl --shutdown, then start again")
    return passed("/dev/dxg exists, and the kernel log contains no error of it")


def _logind(root: Path) -> Iterator[tuple[str, str]]:
    """Settings of logind.conf and its drop-in files; the last one of a name counts."""
    for place in LOGIND:
        path = root / place
        files = sorted(path.glob("*.conf")) if path.is_dir() else [path]
        for file in files:
            for line in file_text(file).splitlines():
                key, equals, value = line.strip().partition("=")
                if equals and not key.startswith(("#", ";")):
                    yield key.strip().lower(), value.strip()


# Checks of disks: the output folder, the resume point, and trainwatch's state folder.

KOHYA_CHECKPOINT_BYTES = 0.87 * GB
"""Size of an SDXL LoRA checkpoint of sd-scripts, if there is none to be measured."""
KEPT_CHECKPOINTS = 10
"""How many more should fit if the settings do not limit how many are kept."""
SMALL_SHARE = 0.1
"""Share of a small disk that must be free instead of ``health.disk_danger_bytes``, which it may not even have."""
STATE_MIN_BYTES = 1 * GB
"""Journal, history and logs of a long run."""


def check_output_dir(plan: LaunchPlan, _machine: Machine) -> Check:
    given, place = plan.spec.output_dir, place_of(plan.spec, "output_dir")
    if given is None and plan.spec.output_hint is not None:
        return passed(f"a new folder below {plan.spec.output_hint} in each launch: found when it saves")
    if given is None:
        found = "not known yet: it is found when the trainer saves, and what stands there before is not protected"
        return warned(found, f"set {place} to where the trainer saves, if you know it")
    folder, why = existing(Path(given)), plan.spec.output_why  # why: it is set in the trainer's own settings
    choose = f"choose another output folder{f' (it was found: {why})' if why else f': {place}'}"
    if not folder.is_dir():
        return failed(f"{folder} is no folder", choose)
    if not os.access(folder, os.W_OK | os.X_OK):
        if os.statvfs(folder).f_flag & os.ST_RDONLY:
            found = f"{folder}: {os.strerror(errno.EROFS)}"
            return failed(found, "mount it writable again (`dmesg` may say why)", errno.EROFS)
        return failed(f"{folder} is not writable", f"check its owner and permissions, or {choose}")
    trainer = plan.settings.get("output_dir")
    if isinstance(trainer, str) and trainer and "{" not in trainer:
        theirs, ours = (Path(os.path.normpath(each)) for each in (Path(plan.spec.cwd, trainer), given))
        if not (theirs.is_relative_to(ours) or ours.is_relative_to(theirs)):
            found = f"trainwatch watches {given}, but the trainer's config saves to {trainer}"
            return warned(found, f"set {place} to the same folder")
    return passed(given + (f" ({why})" if why else ""))


def check_disk(plan: LaunchPlan, _machine: Machine) -> Check:
    """Room for the checkpoints that are still to come."""
    spec, folder = plan.spec, saves_below(plan.spec)
    usage = shutil.disk_usage(folder)
    free, kept, health = float(usage.free), kept_checkpoints(plan), spec.settings.health
    known = max((float(c.size_bytes) for c in list_run_checkpoints(spec, plan.preset).checkpoints), default=0.0)
    size = known or (KOHYA_CHECKPOINT_BYTES if spec.preset == "kohya" else 0.0)
    found = f"{text.size(free)} free in {folder}"
    if size:
        found += f"; a checkpoint has {'' if known else 'about '}{text.size(size)}, {kept} are to be kept"
    danger = min(health.disk_danger_bytes, SMALL_SHARE * usage.total)
    if free < max(danger, need_bytes(size, float(usage.total))):
        return failed(found, "free some space, or save elsewhere")
    if free < max(size * kept, health.disk_warning_bytes):
        return warned(found, "the disk may fill up: save less often, or keep fewer checkpoints")
    return passed(found)


def saves_below(spec: RunSpec) -> Path:
    """The folder whose disk the checkpoints fill, as far as it exists."""
    return existing(Path(spec.output_dir or spec.cwd))


def own_checkpoint_bytes(plan: LaunchPlan) -> float:
    """What the largest complete checkpoint of this run takes on the disk; 0 = there is none yet."""
    origin, found = origins(plan.spec.created_wall), list_run_checkpoints(plan.spec, plan.preset).checkpoints
    own = [c for c in found if c.verdict == "complete" and origin(c) != "earlier"]
    taken = [(disk_bytes(Path(c.path)), float(c.size_bytes)) for c in own]
    return max((size if on_disk is None else on_disk for on_disk, size in taken), default=0.0)


def kept_checkpoints(plan: LaunchPlan) -> int:
    """How many checkpoints the settings keep; an assumed number if they do not set one."""
    if plan.spec.settings.checkpoints.keep_last:
        return plan.spec.settings.checkpoints.keep_last
    limits = (plan.number(key) for key in ("save_last_n_epochs", "save_total_limit", "keep_last", "keep_checkpoints"))
    if kept := next((limit for limit in limits if limit is not None and limit > 0), None):
        return int(kept) + 1  # the final one
    epochs, every = plan.number("max_train_epochs"), plan.number("save_every_n_epochs")
    return math.ceil(epochs / every) + 1 if epochs and every else KEPT_CHECKPOINTS


def check_resume_point(plan: LaunchPlan, machine: Machine) -> Check | None:
    """The checkpoint that a restart would resume from is complete; every byte of it is read."""
    folder = plan.spec.output_dir
    if folder is None or not Path(folder).is_dir():
        return None
    listing, see = list_run_checkpoints(plan.spec, plan.preset), f"see: {typed('checkpoints list', folder)}"
    if not listing.checkpoints:
        return passed("no checkpoint yet")
    if listing.resume_point is None:
        unclear = next((c for c in listing.checkpoints if not c.understood), None)
        if unclear is None:
            return warned("checkpoints exist, but none is complete: a restart would train from the beginning", see)
        gives = "a restart gives it to the trainer if all its saves are like that, and is held if not; "
        return warned(not_understood(unclear), gives + see)
    found = verify(Path(listing.resume_point), deep=True, layout=plan.preset.layout)
    if found.verdict == "opaque":
        gives = "a restart gives it to the trainer, if the command has a place for it, and is held if not; "
        return warned(not_understood(found), gives + see)
    if found.verdict != "complete":
        why = f"{found.name}: {found.verdict} ({found.reason or 'no reason given'})"
        return warned(f"{why}; an older one would be used", see)
    if not machine.run(plan.spec).journal.exists():
        return warned(
            f"{found.name} is complete, and older than this run: a first start trains from the beginning",
            "it may be overwritten: move it, or set another output_dir; to begin from it: "
            f"{typed('run', '--from', found.path, *(() if plan.spec.project else ('--', *plan.spec.command)))}",
        )
    steps = [f"{unit} {n}" for unit, n in (("step", found.step), ("epoch", found.epoch)) if n is not None]
    if Path(found.path).is_dir() and not steps:
        why = f"{found.name} is complete, but contains neither step nor epoch"
        return warned(why, "the trainer may count from 0 again")
    return passed(f"{found.name}, {steps[0] if steps else 'step unknown'}, complete")


def not_understood(checkpoint: Checkpoint) -> str:
    return f"{checkpoint.name} is not understood: {checkpoint.reason or 'no reason given'}"


def check_state_folder(machine: Machine) -> Check:
    folder, elsewhere = existing(machine.home), "set TRAINWATCH_HOME to a folder on a local disk"
    if not os.access(folder, os.W_OK | os.X_OK):
        return failed(f"{folder} is not writable", f"check its owner and permissions, or {elsewhere}")
    free = shutil.disk_usage(folder).free
    found, remedy = f"{machine.home}, {text.size(float(free))} free", f"free some space, or {elsewhere}"
    if free < STATE_MIN_BYTES / 10:
        return failed(found, remedy)
    mounts = file_text(machine.root / "proc/self/mountinfo")
    if is_network_filesystem(str(folder.resolve()), mounts):
        kind = filesystem_type(str(folder.resolve()), mounts)
        return warned(f"{machine.home} is on {kind}, where locks and file events are not reliable", elsewhere)
    return warned(found, remedy) if free < STATE_MIN_BYTES else passed(found)
