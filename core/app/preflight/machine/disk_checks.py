"""Checks of disks: the output folder, the resume point, and trainwatch's state folder."""

import errno
import math
import os
import shutil
from pathlib import Path

from ....checkpoints import verify
from ....model.checkpoints.checkpoint import CheckpointListing
from ....model.launch.disk_need import need_bytes
from ....model.text import size_words
from ....model.text.setting_place import place_of
from ....model.text.suggestion import typed
from ....sense.files.checkpoint_entries import disk_bytes
from ....sense.host.filesystem_type import filesystem_type, is_network_filesystem
from ....store.run_directory import RunDirectory
from ...plan.launch_plan import LaunchPlan
from ...runs.checkpoint_origin import origins
from ...runs.output_folder import list_run_checkpoints
from ..check import GB, Check, Machine, existing, failed, passed, warned

KOHYA_CHECKPOINT_BYTES = 0.87 * GB
"""Size of an SDXL LoRA checkpoint of sd-scripts, if there is none to be measured."""
KEPT_CHECKPOINTS = 10
"""How many more should fit if the settings do not limit how many are kept."""
SMALL_SHARE = 0.1
"""Share of a small disk that must be free instead of ``health.disk_danger_bytes``, which it may not even have."""
STATE_MIN_BYTES = 1 * GB
"""Journal, history and logs of a long run."""


def check_output_dir(plan: LaunchPlan, _machine: Machine) -> Check:
    """The folder for checkpoints is set and can be written to."""
    given = plan.spec.output_dir
    if given is None and plan.spec.output_hint is not None:
        return passed("output_dir", f"a new folder below {plan.spec.output_hint} in each launch: found when it saves")
    if given is None:
        return warned(
            "output_dir",
            "not known yet: it is found when the trainer saves, and what stands there before is not protected",
            f"set {place_of(plan.spec, 'output_dir')} to where the trainer saves, if you know it",
        )
    folder = existing(Path(given))
    if not folder.is_dir():
        return failed("output_dir", f"{folder} is no folder", _choose(plan, "choose another output folder"))
    if not os.access(folder, os.W_OK | os.X_OK):
        if os.statvfs(folder).f_flag & os.ST_RDONLY:
            found = f"{folder}: {os.strerror(errno.EROFS)}"
            return failed("output_dir", found, "mount it writable again (`dmesg` may say why)", errno.EROFS)
        remedy = _choose(plan, "check its owner and permissions, or choose another output folder")
        return failed("output_dir", f"{folder} is not writable", remedy)
    trainer = plan.settings.get("output_dir")
    if isinstance(trainer, str) and trainer and "{" not in trainer and _elsewhere(plan, trainer, given):
        return warned(
            "output_dir",
            f"trainwatch watches {given}, but the trainer's config saves to {trainer}",
            f"set {place_of(plan.spec, 'output_dir')} to the same folder",
        )
    return passed("output_dir", given + (f" ({plan.spec.output_why})" if plan.spec.output_why else ""))


def _choose(plan: LaunchPlan, what: str) -> str:
    """``what`` with where it is set: in the trainer's own settings, if the folder was found there."""
    if plan.spec.output_why:
        return f"{what} (it was found: {plan.spec.output_why})"
    return f"{what}: {place_of(plan.spec, 'output_dir')}"


def check_disk(plan: LaunchPlan, _machine: Machine) -> Check:
    """Room for the checkpoints that are still to come."""
    spec = plan.spec
    folder = existing(Path(spec.output_dir or spec.cwd))
    usage = shutil.disk_usage(folder)
    free = float(usage.free)
    size, known = checkpoint_bytes(plan)
    kept = kept_checkpoints(plan)
    health = spec.settings.health
    found = f"{size_words.size(float(free))} free in {folder}"
    if size:
        about = "a checkpoint has" if known else "a checkpoint has about"
        found += f"; {about} {size_words.size(size)}, {kept} are to be kept"
    danger = min(health.disk_danger_bytes, SMALL_SHARE * usage.total)
    if free < max(danger, need_bytes(size, float(usage.total))):
        return failed("disk", found, "free some space, or save elsewhere")
    if free < max(size * kept, health.disk_warning_bytes):
        return warned("disk", found, "the disk may fill up: save less often, or keep fewer checkpoints")
    return passed("disk", found)


def checkpoint_bytes(plan: LaunchPlan) -> tuple[float, bool]:
    """Size of the largest checkpoint so far, and whether it was measured; else the framework's usual size, or 0."""
    size = max((float(c.size_bytes) for c in _listing(plan).checkpoints), default=0.0)
    if not size and plan.spec.preset == "kohya":
        return KOHYA_CHECKPOINT_BYTES, False
    return size, size > 0


def own_checkpoint_bytes(plan: LaunchPlan) -> float:
    """What the largest complete checkpoint of this run takes on the disk; 0 = there is none yet."""
    origin = origins(plan.spec.created_wall)
    own = [c for c in _listing(plan).checkpoints if c.verdict == "complete" and origin(c) != "earlier"]
    taken = [(disk_bytes(Path(c.path)), float(c.size_bytes)) for c in own]
    return max((size if on_disk is None else on_disk for on_disk, size in taken), default=0.0)


def kept_checkpoints(plan: LaunchPlan) -> int:
    """How many checkpoints the settings keep; an assumed number if they do not set one."""
    if plan.spec.settings.checkpoints.keep_last:
        return plan.spec.settings.checkpoints.keep_last
    for key in ("save_last_n_epochs", "save_total_limit", "keep_last", "keep_checkpoints"):
        kept = plan.number(key)
        if kept is not None and kept > 0:
            return int(kept) + 1  # the final one
    epochs, every = plan.number("max_train_epochs"), plan.number("save_every_n_epochs")
    if epochs and every:
        return math.ceil(epochs / every) + 1
    return KEPT_CHECKPOINTS


def check_resume_point(plan: LaunchPlan, machine: Machine) -> Check | None:
    """The checkpoint that a restart would resume from is complete; every byte of it is read."""
    folder = plan.spec.output_dir
    if folder is None or not Path(folder).is_dir():
        return None
    listing = _listing(plan)
    if not listing.checkpoints:
        return passed("resume point", "no checkpoint yet")
    see = f"see: {typed('checkpoints list', folder)}"
    if listing.resume_point is None and not all(c.understood for c in listing.checkpoints):
        unclear = next(c for c in listing.checkpoints if not c.understood)
        return warned(
            "resume point",
            f"{unclear.name} is not understood: {unclear.reason or 'no reason given'}",
            "a restart gives it to the trainer if all its saves are like that, and is held if not; " + see,
        )
    if listing.resume_point is None:
        return warned(
            "resume point", "checkpoints exist, but none is complete: a restart would train from the beginning", see
        )
    found = verify(Path(listing.resume_point), deep=True, layout=plan.preset.layout)
    if found.verdict == "opaque":
        return warned(
            "resume point",
            f"{found.name} is not understood: {found.reason or 'no reason given'}",
            "a restart gives it to the trainer, if the command has a place for it, and is held if not; " + see,
        )
    if found.verdict != "complete":
        why = f"{found.name}: {found.verdict} ({found.reason or 'no reason given'})"
        return warned("resume point", f"{why}; an older one would be used", see)
    if not RunDirectory(machine.home / "runs" / plan.spec.id).journal.exists():
        return warned(
            "resume point",
            f"{found.name} is complete, and older than this run: a first start trains from the beginning",
            "it may be overwritten: move it, or set another output_dir; to begin from it: "
            f"{typed('run', '--from', found.path, *(() if plan.spec.project else ('--', *plan.spec.command)))}",
        )
    position = f"step {found.step}" if found.step is not None else f"epoch {found.epoch}"
    known = found.step is not None or found.epoch is not None
    if Path(found.path).is_dir() and not known:
        return warned(
            "resume point",
            f"{found.name} is complete, but contains neither step nor epoch",
            "the trainer may count from 0 again",
        )
    return passed("resume point", f"{found.name}, {position if known else 'step unknown'}, complete")


def check_state_folder(machine: Machine) -> Check:
    """Trainwatch's state folder is on a local disk, writable, and has free space."""
    folder = existing(machine.home)
    remedy = "set TRAINWATCH_HOME to a folder on a local disk"
    if not os.access(folder, os.W_OK | os.X_OK):
        return failed("state folder", f"{folder} is not writable", f"check its owner and permissions, or {remedy}")
    free = shutil.disk_usage(folder).free
    found = f"{machine.home}, {size_words.size(float(free))} free"
    if free < STATE_MIN_BYTES / 10:
        return failed("state folder", found, f"free some space, or {remedy}")
    try:
        mounts = (machine.root / "proc/self/mountinfo").read_text()
    except OSError:
        mounts = ""
    if is_network_filesystem(str(folder.resolve()), mounts):
        kind = filesystem_type(str(folder.resolve()), mounts)
        return warned(
            "state folder", f"{machine.home} is on {kind}, where locks and file events are not reliable", remedy
        )
    if free < STATE_MIN_BYTES:
        return warned("state folder", found, f"free some space, or {remedy}")
    return passed("state folder", found)


def _listing(plan: LaunchPlan) -> CheckpointListing:
    return list_run_checkpoints(plan.spec, plan.preset)


def _elsewhere(plan: LaunchPlan, trainer: str, watched: str) -> bool:
    theirs = Path(os.path.normpath(Path(plan.spec.cwd, trainer)))
    ours = Path(os.path.normpath(watched))
    return theirs != ours and ours not in theirs.parents and theirs not in ours.parents
