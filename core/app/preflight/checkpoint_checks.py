"""Checks of the checkpoint that the person wrote into the command or config."""

import json
import os
import re
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...act.launch import spool
from ...bound_process import bound
from ...checkpoints import inspect
from ...model.checkpoint import Checkpoint, LoadRefusal
from ...model.preset import Preset
from ...model.resume import PLACEHOLDER
from ...model.run import RunSpec
from ...model.suggestion import typed
from ...source import words
from ...source.trainer_source import source_of
from ...views.length_words import resume_words, second_start_line
from ..plan.launch_plan import LaunchPlan
from ..plan.resume_plan import weights_only_load
from ..plan.told_length import told_lengths
from ..runs.output_folder import list_run_checkpoints
from .check import Check, Machine, failed, passed, warned
from .gpu_checks import torch_version
from .launch_checks import looks_like_a_path, place_of

_OTHER = re.compile(r"\{(?:step|name|path-)")
"""What an option takes that is no path of its own."""
_NAMES = re.compile(
    r"(auto_?)?(resume|continue|restore)(_training|_run|_from|_checkpoint|_ckpt|_path|_state|_file)*|ckpt_path"
)
_LIKE_ONE = re.compile(r"check_?point|ckpt|(epoch|step|iter)\w*[-_=]?\d", re.IGNORECASE)
"""A name without a folder or a suffix that can only be a checkpoint: ``checkpoint-500``."""


def check_checkpoint_named(plan: LaunchPlan, _machine: Machine) -> Check | None:
    found = named_checkpoints(plan)
    for key, value, place in found:
        if place is not None:
            continue
        what = f"{key} = {value}: there is no such checkpoint (paths start at {plan.spec.cwd})"
        see = f"`{typed('checkpoints list', plan.spec.output_dir or 'DIR')}` shows what there is"
        asks = source_of(plan.spec).begins_without(key)
        if asks is not None and _is_first_save(plan, value):
            return warned(what, f"nothing to do at a first start: {asks} begins anew without it")
        if not (looks_like_a_path(value) or "/" in value or _LIKE_ONE.search(value)):
            return warned(what, f"nothing to do if it is no path; else: {see}")
        return failed(what, f"correct the path; {see}; without the option the training begins anew")
    return passed(", ".join(value for _, value, _ in found)) if found else None


def named_checkpoints(plan: LaunchPlan) -> list[tuple[str, str, Path | None]]:
    """(setting, value, where it is) of every checkpoint that a launch is told to resume from; None: nowhere."""
    return [(key, value, _place(plan, value)) for key, value in _given(plan)]


def point_of(plan: LaunchPlan) -> Path | None:
    """The checkpoint that a launch begins from: what the person named, else the newest whole one."""
    if plan.begins:
        return Path(plan.begins)
    named = next((place for _, _, place in named_checkpoints(plan) if place is not None), None)
    if named is not None or plan.begins is not None:
        return named
    point = list_run_checkpoints(plan.spec, plan.preset).resume_point
    return None if point is None else Path(point)


def _given(plan: LaunchPlan) -> Iterator[tuple[str, str]]:
    way = plan.spec.resume_way
    takes_path = (
        way is not None and way.file is not None and bool(way.file.args) and not _OTHER.search(way.file.args[-1])
    )
    own = way.file.args[0] if takes_path and way is not None and way.file is not None else ""
    option = own.lstrip("-").partition("=")[0].rpartition(".")[2].replace("-", "_") if own.startswith("-") else ""
    for key, value in plan.settings.items():
        if not isinstance(value, str) or (key != option and not _NAMES.fullmatch(key.lower())):
            continue
        leaves_it = value.lower() in words.NEWEST | {"", "none", "null", "false", "no", "never", "off", "0"}
        if (
            leaves_it
            or value.isdigit()
            or "://" in value
            or any(sign in value for sign in "{}$")
            or words.TRACKERS.search(key)
        ):
            continue
        yield key, value


def _place(plan: LaunchPlan, value: str) -> Path | None:
    """Where it is: from the working folder, or by its name in an output folder (diffusers)."""
    named = place_of(plan, value)
    if named is not None:
        return named
    places = [
        Path(plan.spec.cwd, folder, name) for folder in plan.spec.output_folders for name in (value, Path(value).name)
    ]
    return next((place for place in places if place.exists()), None)


def _is_first_save(plan: LaunchPlan, value: str) -> bool:
    """Whether it lies where the trainer saves, and nothing was saved yet."""
    place = os.path.normpath(Path(plan.spec.cwd, value))
    folders = [os.path.normpath(Path(plan.spec.cwd, folder)) for folder in plan.spec.output_folders]
    inside = any(place.startswith(folder + os.sep) for folder in folders)
    return (inside or not folders) and not list_run_checkpoints(plan.spec, plan.preset).checkpoints


# The size of a launch's data set, kept beside the attempt, so that the next launch can detect a change.

FILE_NAME = "data.json"
BUDGET_S = 2.0
MOST_FILES = 200_000
MADE_BY_TRAINERS = frozenset({".npz", ".npy", ".cache", ".lock", ".arrow", ".tmp", ".part", ".log", ".safetensors"})
"""Suffixes of caches that trainers write beside the data."""

Inventory = dict[str, dict[str, int]]
"""Path → suffix → number of files; "" for a single file, then its size in bytes."""


def keep_inventory(folder: Path, paths: Mapping[str, Any]) -> None:
    """Count the data and write the counts. A data set that cannot be counted in time is left out.

    Raises OSError when it cannot be written.
    """
    counted = {path: found for path in paths if (found := count_files(Path(path))) is not None}
    if counted:
        spool.write(str(folder), FILE_NAME, counted)


def read_inventory(folder: Path) -> Inventory:
    """The counts that were written; empty if there are none."""
    found = spool.read(str(folder), FILE_NAME) or {}
    return {path: {k: int(v) for k, v in counts.items()} for path, counts in found.items() if isinstance(counts, dict)}


def count_files(path: Path, budget_s: float = BUDGET_S) -> dict[str, int] | None:
    """Files by suffix, in all folders below; None if there are none, or too many to be counted in time."""
    deadline, counted, number = time.monotonic() + budget_s, dict[str, int](), 0
    try:
        if path.is_file():
            return {"": path.stat().st_size}
    except OSError:
        return None
    for _, _, names in os.walk(path):
        for name in names:
            suffix = os.path.splitext(name)[1].lower()  # noqa: PTH122
            if suffix not in MADE_BY_TRAINERS:
                counted[suffix] = counted.get(suffix, 0) + 1
        number += len(names)
        if number > MOST_FILES or time.monotonic() > deadline:
            return None
    return counted or None


def difference(before: Mapping[str, int], now: Mapping[str, int]) -> str:
    """What changed, as text; empty if nothing did."""
    changes = []
    for suffix in sorted(before.keys() | now.keys()):
        was, is_ = before.get(suffix, 0), now.get(suffix, 0)
        if was != is_:
            what = f"{suffix} files" if suffix else "bytes"
            changes.append(f"{was} {what} then, {is_} now")
    return ", ".join(changes)


# Whether the run survives a crash: how its trainer is resumed.

REMEDY = "the script needs a way to go on from a checkpoint: docs/how-to/resume.md has the lines"
CORRECT = "write {resume} behind an option that it has, or give it one (docs/how-to/resume.md)"


def check_resume(plan: LaunchPlan, _machine: Machine) -> Check:
    """How the trainer is resumed after a crash. An option that its parser does not have ends each restart."""
    way = plan.spec.resume_way
    said = resume_words(way)
    if way is not None and way.will in {"yes", "self"}:
        return passed(said)
    if way is not None and way.will == "no" and way.source == "command":
        return failed(way.how, CORRECT)
    return warned(said, REMEDY)


def check_second_start(plan: LaunchPlan, _machine: Machine) -> Check | None:
    """A restart does not delete what it is to resume from."""
    spec, way = plan.spec, plan.spec.resume_way
    second = spec.second_start
    if not second.destroys:
        return None
    said = (second_start_line(second) or "").removeprefix("Restart: ")
    restarts = (way is not None and way.will in {"yes", "self"}) or spec.settings.restart.if_not_told == "go_on"
    if not second.left or not restarts or _takes_any_path(plan):
        return passed(said)
    return failed(
        f"{second.left}, and a restart finds its checkpoint only there",
        "let an option decide about the deletion, or give the script an option for the path that it resumes from",
    )


def _takes_any_path(plan: LaunchPlan) -> bool:
    styles = [each for each in (plan.preset.resume_file, plan.preset.resume_directory) if each is not None]
    words = [word for style in styles for word in (*style.args, *style.env.values())]
    named = any(style.key is not None for style in styles) or any("{path" in word for word in words)
    return named or any(PLACEHOLDER in word for word in plan.spec.command)


SAVE_STEPS = (
    "save_steps", "save_every_n_steps", "checkpointing_steps", "checkpoint_steps", "save_every", "save_interval",
    "checkpoint_every", "ckpt_every", "save_freq", "save_step",
)  # fmt: skip
SAVE_EPOCHS = ("save_every_n_epochs", "save_epochs", "save_every_epochs", "checkpointing_epochs", "save_epoch_freq")
WEIGHTS_ONLY = ("save_only_model", "save_weights_only", "save_model_only", "only_save_model")
"""Settings that leave the state of the optimizer out of the checkpoints."""


def check_saves(plan: LaunchPlan, _machine: Machine) -> Check | None:
    """The first checkpoint comes before the end, and holds what a resume needs."""
    told = told_lengths(plan.spec, plan.preset, plan.profiles, None).get(plan.spec.settings.profiles.use or "")
    own = {number.name.replace("-", "_"): number.value for number in reversed(source_of(plan.spec).numbers)}
    for keys, total, unit in (
        (SAVE_STEPS, told and told.steps, "step"), (SAVE_EPOCHS, told and told.epochs, "epoch"),
    ):  # fmt: skip
        every = next(((key, value) for key in keys if (value := plan.number(key) or own.get(key))), None)
        if every is not None and total and every[1] > total:
            found = f"{every[0]} = {every[1]:g}: the first checkpoint comes after the end ({unit} {total})"
            return warned(found, "save more often: a crash before the end loses everything")
    if (key := next((key for key in WEIGHTS_ONLY if plan.truth(key)), None)) is not None:
        return warned(f"{key} leaves the optimizer out", "leave it out: a resume begins with a new optimizer otherwise")
    if plan.spec.preset == "kohya" and "--resume" in plan.spec.command and not plan.truth("save_state"):
        return warned("--resume needs a saved state, and save_state is not on", "add --save_state")
    return None


# What the trainer's torch reads of a checkpoint: its keys and shapes, and whether it would load it at a resume.

WEIGHTS_ONLY_SINCE = (2, 6)
"""From this version of torch on, ``torch.load`` takes weights only if nothing else is said."""
NOT_WEIGHTS_ONLY = "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"


def check_load(plan: LaunchPlan, _machine: Machine) -> Check | None:
    """The trainer's torch would take what the newest checkpoint holds."""
    point = point_of(plan)
    found = None if point is None else inspect(point, layout=plan.preset.layout)
    refusal = None if found is None else load_refusal(plan.spec, plan.preset, found)
    if found is None or refusal is None:
        return None
    cure = f"write weights_only=False there{'' if refusal.explicit else f', or set {NOT_WEIGHTS_ONLY}=1: {COST}'}"
    return warned(f"{found.name} {refusal.words}", cure)


COST = "then every file that the trainer loads can run code of whoever made it, downloaded ones too"


def load_refusal(spec: RunSpec, preset: Preset, checkpoint: Checkpoint) -> LoadRefusal | None:
    """Why the trainer's own ``torch.load`` would not take a checkpoint; None if that is not known."""
    if not checkpoint.objects:
        return None
    load = weights_only_load(spec, preset)
    if load is None or not (load.explicit or _is_default(spec)):
        return None
    return LoadRefusal(place=load.place, objects=checkpoint.objects, explicit=load.explicit)


def _is_default(spec: RunSpec) -> bool:
    """Whether the trainer's torch is known to take weights only, if nothing else is said."""
    found = re.search(r"__version__ = '(\d+)\.(\d+)", torch_version(spec))
    forced = {**os.environ, **spec.env}.get(NOT_WEIGHTS_ONLY)
    return not forced and found is not None and (int(found[1]), int(found[2])) >= WEIGHTS_ONLY_SINCE


TIMEOUT_S = 120.0
PROGRAM = """import json, sys
import torch
def walk(value, prefix, found, depth=0):
    if isinstance(value, torch.Tensor):
        found[prefix] = list(value.shape)
    elif isinstance(value, dict) and depth < 4:
        for key, inner in value.items():
            walk(inner, f"{prefix}.{key}" if prefix else str(key), found, depth + 1)
found = {}
walk(torch.load(sys.argv[1], map_location="cpu", weights_only=True, mmap=True), "", found)
print(json.dumps(found))
"""
OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": ""}


def torch_shapes(
    python: Sequence[str], path: Path, *, cwd: str, env: Mapping[str, str], timeout_s: float = TIMEOUT_S
) -> dict[str, tuple[int, ...]] | None:
    """Shape by key, for files that only torch can open; None if that interpreter has none, or it refuses the file.

    A child process with a time limit, ``weights_only`` (no pickled object is built), without network.
    """
    try:
        done = subprocess.run(
            bound([*python, "-c", PROGRAM, str(path)], tree=True, cwd=cwd, path=env.get("PATH")),
            stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout_s,
            check=False, cwd=cwd, env={**os.environ, **env, **OFFLINE},
        )  # fmt: skip
        if done.returncode != 0:
            return None
        found = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    return {str(key): tuple(int(length) for length in shape) for key, shape in found.items()}
