"""Checks of the checkpoint that the person wrote into the command or config."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from ....model.text.suggestion import typed
from ....source import words
from ....source.trainer_source import read_source
from ...plan.launch_plan import LaunchPlan
from ...runs.output_folder import list_run_checkpoints
from ..check import Check, Machine, failed, passed, warned
from ..launch_checks import looks_like_a_path, place_of

_OTHER = re.compile(r"\{(?:step|name|path-)")
"""What an option takes that is no path of its own."""
_NAMES = re.compile(
    r"(auto_?)?(resume|continue|restore)(_training|_run|_from|_checkpoint|_ckpt|_path|_state|_file)*|ckpt_path"
)
_LIKE_ONE = re.compile(r"check_?point|ckpt|(epoch|step|iter)\w*[-_=]?\d", re.IGNORECASE)
"""A name without a folder or a suffix that can only be a checkpoint: ``checkpoint-500``."""


def check_checkpoint_named(plan: LaunchPlan, _machine: Machine) -> Check | None:
    """The checkpoint that command or config name to resume from exists."""
    found = named_checkpoints(plan)
    for key, value, place in found:
        if place is not None:
            continue
        what = f"{key} = {value}: there is no such checkpoint (paths start at {plan.spec.cwd})"
        see = f"`{typed('checkpoints list', plan.spec.output_dir or 'DIR')}` shows what there is"
        source = read_source(plan.spec.command, plan.spec.cwd, plan.spec.env)
        asks = None if isinstance(source, str) else source.begins_without(key)
        if asks is not None and _is_first_save(plan, value):
            return warned("checkpoint", what, f"nothing to do at a first start: {asks} begins anew without it")
        if not (looks_like_a_path(value) or "/" in value or _LIKE_ONE.search(value)):
            return warned("checkpoint", what, f"nothing to do if it is no path; else: {see}")
        return failed("checkpoint", what, f"correct the path; {see}; without the option the training begins anew")
    return passed("checkpoint", ", ".join(value for _, value, _ in found)) if found else None


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
