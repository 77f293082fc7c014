"""The checks of ``trainwatch check``: each a small function that looks at one thing and says what it found."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import msgspec

from trainwatch.core.model.run import RunSpec

MIN_RAM_AVAILABLE_BYTES = 10e9
"""Requirement A8: available RAM above 10 GB before a start."""
KEPT_CHECKPOINTS = 10
"""How many more checkpoints of the newest one's size should fit on the disk."""
PROBE_TIMEOUT_S = 60.0
"""``import torch`` takes seconds on a cold disk."""


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One look. ``found`` in words; ``remedy``: what to do about a warning or a failure."""

    name: str
    result: Literal["pass", "warn", "fail"]
    found: str
    remedy: str = ""


def preflight(spec: RunSpec | None) -> list[Check]:
    """All checks that apply; without a project only those of the machine."""
    checks = [look() for look in MACHINE_CHECKS]
    if spec is None:
        checks.append(
            Check(
                name="config",
                result="warn",
                found="no trainwatch.toml here",
                remedy="write one: trainwatch init -- COMMAND",
            )
        )
    else:
        checks = (
            [Check(name="config", result="pass", found=f"{spec.project}: run {spec.name}, preset {spec.preset}")]
            + [c for look in RUN_CHECKS if (c := look(spec)) is not None]
            + checks
        )
    return checks


def _command(spec: RunSpec) -> Check:
    program = spec.command[0]
    found = shutil.which(program, path=spec.env.get("PATH", os.environ.get("PATH")))
    here = Path(spec.cwd, program)
    if found is None and "/" in program and os.access(here, os.X_OK):
        found = str(here)
    if found is None:
        return Check(
            name="command",
            result="fail",
            found=f"command not found: {program}",
            remedy="check run.command, or give the full path",
        )
    return Check(name="command", result="pass", found=found)


def _launch(spec: RunSpec) -> Check:
    from trainwatch.core.act.derive import DeriveError

    from .wiring import plan_first_launch

    try:
        plan = plan_first_launch(spec)
    except DeriveError as error:
        return Check(name="launch", result="fail", found=str(error), remedy="mend the trainer's config or the profile")
    profile = spec.settings.profiles.use or "none"
    return Check(
        name="launch", result="pass", found=f"profile {profile}, {len(plan.changes)} settings differ from your config"
    )


def _torch(spec: RunSpec) -> Check | None:
    """Asks the trainer's own interpreter, not ours."""
    python = shutil.which(spec.command[0])
    if python is None or "python" not in Path(python).name:
        return None
    code = "import torch; print(torch.__version__, torch.cuda.is_available(), torch.cuda.device_count())"
    try:
        done = subprocess.run(
            [python, "-c", code],
            capture_output=True, text=True, timeout=PROBE_TIMEOUT_S, check=False,
            cwd=spec.cwd, env={**os.environ, **spec.env},
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return Check(name="torch", result="warn", found=f"{python} could not be asked: {error}")
    if done.returncode != 0:
        return Check(
            name="torch", result="warn", found=f"{python} has no torch", remedy="fine when the trainer needs none"
        )
    version, cuda, count = done.stdout.split()[-3:]
    if cuda != "True":
        return Check(
            name="torch",
            result="warn",
            found=f"torch {version} sees no CUDA",
            remedy="training would run on the CPU: check the driver",
        )
    return Check(name="torch", result="pass", found=f"torch {version} sees {count} GPU(s)")


def _disk(spec: RunSpec) -> Check:
    folder = Path(spec.output_dir or spec.cwd)
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    size = 0
    if spec.output_dir and Path(spec.output_dir).is_dir():
        from trainwatch.core.checkpoints import list_checkpoints

        size = max((c.size_bytes for c in list_checkpoints(Path(spec.output_dir)).checkpoints), default=0)
    needed = max(size * KEPT_CHECKPOINTS, spec.settings.health.disk_warning_bytes)
    found = f"{free / 1e9:.1f} GB free in {folder}" + (f", a checkpoint has {size / 1e9:.2f} GB" if size else "")
    if free < spec.settings.health.disk_danger_bytes or (size and free < 2 * size):
        return Check(name="disk", result="fail", found=found, remedy="free some space, or save elsewhere")
    if free < needed:
        return Check(
            name="disk", result="warn", found=found, remedy="the night may fill it: save less often, or keep fewer"
        )
    return Check(name="disk", result="pass", found=found)


def _output_dir(spec: RunSpec) -> Check:
    if spec.output_dir is None:
        return Check(
            name="output_dir", result="warn", found="not set: checkpoints are not watched, and a restart begins anew",
            remedy="set run.output_dir to where the trainer saves",
        )  # fmt: skip
    folder = Path(spec.output_dir)
    while not folder.exists():
        folder = folder.parent
    if not os.access(folder, os.W_OK):
        return Check(
            name="output_dir", result="fail", found=f"{folder} is not writable", remedy="check its owner and rights"
        )
    return Check(name="output_dir", result="pass", found=spec.output_dir)


def _resume_point(spec: RunSpec) -> Check | None:
    if spec.output_dir is None or not Path(spec.output_dir).is_dir():
        return None
    from trainwatch.core.checkpoints import list_checkpoints, verify

    listing = list_checkpoints(Path(spec.output_dir))
    if not listing.checkpoints:
        return Check(name="resume point", result="pass", found="no checkpoint yet")
    if listing.resume_point is None:
        return Check(
            name="resume point", result="warn", found="checkpoints exist, but none is whole",
            remedy=f"see: trainwatch checkpoints list {spec.output_dir}",
        )  # fmt: skip
    found = verify(Path(listing.resume_point), deep=True)
    if found.verdict != "complete":
        return Check(name="resume point", result="warn", found=f"{found.name}: {found.verdict} ({found.reason})")
    return Check(
        name="resume point",
        result="pass",
        found=f"{found.name}, step {found.step if found.step is not None else '–'}, good",
    )


def _tmux() -> Check:
    found = shutil.which("tmux")
    if found is None:
        return Check(
            name="tmux", result="warn", found="not installed: no window on the trainer", remedy="apt install tmux"
        )
    return Check(name="tmux", result="pass", found=found)


def _gpu() -> Check:
    code = (
        "import pynvml as n; n.nvmlInit(); "
        "print(*[f'{n.nvmlDeviceGetMemoryInfo(n.nvmlDeviceGetHandleByIndex(i)).used / 1e9:.1f}' "
        "for i in range(n.nvmlDeviceGetCount())])"
    )
    try:
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=10, check=False)
    except subprocess.TimeoutExpired:
        return Check(
            name="gpu",
            result="fail",
            found="the driver does not answer",
            remedy="look at dmesg; a reboot may be needed",
        )
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        return Check(
            name="gpu",
            result="warn",
            found=f"no NVIDIA GPU can be seen ({last})",
            remedy="fine on a machine without one",
        )
    used = done.stdout.split()
    busy = [f"GPU {i}: {gb} GB" for i, gb in enumerate(used) if float(gb) > 1.0]
    if busy:
        return Check(
            name="gpu", result="warn", found=f"in use already: {', '.join(busy)}", remedy="see who: nvidia-smi"
        )
    return Check(name="gpu", result="pass", found=f"{len(used)} GPU(s), free")


def _memory() -> Check:
    import psutil

    available = psutil.virtual_memory().available
    found = f"{available / 1e9:.1f} GB available"
    if available < MIN_RAM_AVAILABLE_BYTES:
        return Check(
            name="memory", result="warn", found=found, remedy="close what is not needed; 10 GB is the guide's bound"
        )
    return Check(name="memory", result="pass", found=found)


def _logout() -> Check:
    from trainwatch.core.act import scope

    reason = scope.why_not()
    if reason is None:
        return Check(name="logout", result="pass", found="runs get a systemd scope of their own")
    linger = Path("/var/lib/systemd/linger", os.environ.get("USER", "")).exists() if os.environ.get("USER") else False
    if not shutil.which("loginctl") or linger:
        return Check(name="logout", result="pass", found="nothing here ends a user's processes at logout")
    return Check(
        name="logout", result="warn", found=f"no systemd scope ({reason}): logging out may end the run",
        remedy="loginctl enable-linger $USER",
    )  # fmt: skip


MACHINE_CHECKS: tuple[Callable[[], Check], ...] = (_gpu, _memory, _tmux, _logout)
RUN_CHECKS: tuple[Callable[[RunSpec], Check | None], ...] = (
    _command,
    _launch,
    _torch,
    _output_dir,
    _disk,
    _resume_point,
)
