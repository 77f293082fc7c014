"""Checks of a resume: the model of the launch against the checkpoint, the data against those of the last launch."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ....act.config.derive import Derived, DeriveError, read_config
from ....act.config.nested_keys import leaves
from ....act.config.trainer_config import config_in_command
from ....act.launch.attempt_records import read_order
from ....checkpoints import CheckpointOverview, show
from ....model.checkpoints.checkpoint_names import tensor_format
from ....model.run import RunSpec
from ....model.text.suggestion import typed
from ....store.run_directory import RunDirectory
from ...plan.launch_plan import LaunchPlan, settings_in, settings_of
from ...runs.known_runs import all_runs
from ..check import Check, Machine, failed, passed, warned
from ..launch_checks import DATA_KEYS
from ..machine.gpu_checks import interpreter
from .checkpoint_checks import point_of
from .data_inventory import count_files, difference, keep_inventory, read_inventory
from .model_fit import Held, Misfit, Wanted, misfits, read_config_json
from .torch_load import torch_shapes

MODEL_SECTIONS = frozenset({"model", "model_config", "network", "transformer", "unet"})
COMPILED = "_orig_mod."
WRAPPERS = ("module.", "model_state_dict.", "state_dict.", "model.")
SHOWN = 4


def check_model(plan: LaunchPlan, _machine: Machine, *, ask_torch: bool = True) -> Check | None:
    """The model that the launch builds can load the checkpoint that it resumes from."""
    point = point_of(plan)
    held = None if point is None else held_in(point, plan.spec, ask_torch=ask_torch)
    if point is None or held is None:
        return None
    found = misfits(held, wanted_by(plan.spec, plan.settings))
    if any(misfit.fatal for misfit in found):
        anew = typed("resume", plan.spec.id, "--fresh")
        return failed(
            "model", f"config changed since {held.name}: {summary(found)}",
            f"put the old values back, or begin anew in another output_dir: {anew}",
        )  # fmt: skip
    if found:
        return warned(
            "model", f"config changed since {held.name}: {summary(found)}", "nothing to do if this is intended"
        )
    return passed("model", f"{_described(point, held)}; nothing in the config contradicts it")


def check_model_without_torch(plan: LaunchPlan, machine: Machine) -> Check | None:
    """The same in milliseconds: a checkpoint that only the trainer's torch can read is not compared."""
    return check_model(plan, machine, ask_torch=False)


def check_data_changed(plan: LaunchPlan, machine: Machine) -> Check | None:
    """The data set is that of the last launch. A saved loader state does not fit another one."""
    folder = last_launch(machine.home, plan.spec)
    if folder is None and plan.begins != "":
        folder = next((last_launch(machine.home, other) for other in _of_same_folder(plan.spec)), None)
    before = None if folder is None else launch_settings(folder, plan.spec)
    if folder is None or before is None:
        return None
    changed = [
        f"{key} was {before[key]}, is now {plan.settings[key]}"
        for key in sorted(DATA_KEYS & before.keys() & plan.settings.keys())
        if str(before[key]) != str(plan.settings[key])
    ]
    now = set(data_paths(plan.spec, plan.settings))
    for path, counts in read_inventory(folder).items():
        current = count_files(Path(path)) if path in now else None
        if current is not None and (change := difference(counts, current)):
            changed.append(f"{path}: {change}")
    if changed:
        return warned(
            "data set",
            f"changed since the last launch: {'; '.join(changed[:SHOWN])}",
            "a saved loader state and the step within the epoch belong to the old data: resume from weights, or start "
            "a new epoch",
        )
    return passed("data set", "as at the last launch")


def _of_same_folder(spec: RunSpec) -> Iterator[RunSpec]:
    """Runs that saved into this run's output folder, newest first: what it goes on from may be theirs."""
    wanted = None if spec.output_dir is None else os.path.realpath(Path(spec.cwd, spec.output_dir))
    for run in all_runs() if wanted is not None else ():
        other = run.load_spec()
        if other.output_dir and os.path.realpath(Path(other.cwd, other.output_dir)) == wanted and run.attempt_folders():
            yield other


def data_paths(spec: RunSpec, settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Absolute paths of the data that the settings name."""
    named = (settings[key] for key in sorted(DATA_KEYS & settings.keys()))
    return tuple(str(Path(spec.cwd, name)) for name in named if isinstance(name, str) and name and "://" not in name)


def remember_data(spec: RunSpec, folder: Path, derived: Derived) -> None:
    """Write down how large the data set of this launch is. Raises OSError."""
    keep_inventory(folder, dict.fromkeys(data_paths(spec, settings_of(spec, derived))))


def summary(found: Sequence[Misfit]) -> str:
    """The first misfits as one line."""
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return "; ".join(misfit.sentence for misfit in found[:SHOWN]) + more


def resume_misfit(spec: RunSpec, point: Path, derived: Derived) -> str | None:
    """Why the planned launch cannot load this checkpoint; None if nothing is certain. Takes milliseconds."""
    held = held_in(point, spec, ask_torch=False)
    if held is None:
        return None
    found = [m for m in misfits(held, wanted_by(spec, settings_of(spec, derived))) if m.fatal]
    return f"the config does not fit {held.name}: {summary(found)}" if found else None


def held_in(path: Path, spec: RunSpec, *, ask_torch: bool = True) -> Held | None:
    """The contents of a checkpoint: read here, else by the trainer's torch; None if neither can read it."""
    try:
        overview = show(path)
    except OSError:
        return None
    if overview is None:
        return None
    shapes = {tensor.name: tensor.shape for tensor in overview.tensors}
    if not shapes and ask_torch:
        shapes = _by_torch(path, overview, spec)
    config = read_config_json(path) if path.is_dir() else {}
    if not (shapes or overview.metadata or config):
        return None
    return Held(
        name=overview.checkpoint.name,
        shapes={_bare(key): shape for key, shape in shapes.items()},
        metadata=overview.metadata,
        config=config,
    )


def wanted_by(spec: RunSpec, settings: Mapping[str, Any]) -> Wanted:
    """The model that the launch builds, as far as its config describes it."""
    base = settings.get("config_name") or settings.get("model_name_or_path")
    folder = Path(spec.cwd, base) if isinstance(base, str) and base else None
    return Wanted(
        model=_model_section(spec),
        settings=settings,
        config=read_config_json(folder) if folder is not None and folder.is_dir() else {},
    )


def last_launch(home: Path, spec: RunSpec) -> Path | None:
    """The folder of the newest launch of this run."""
    folders = RunDirectory(home / "runs" / spec.id).attempt_folders()
    return next((folder for folder in folders if read_order(folder) is not None), None)


def launch_settings(folder: Path, spec: RunSpec) -> dict[str, Any] | None:
    """All settings of a launch, by bare name; None when they cannot be read."""
    order, spec = read_order(folder), config_in_command(spec)
    copy = None if spec.config is None else folder / Path(spec.config).name
    try:
        text = copy.read_text(encoding="utf-8") if copy is not None and copy.is_file() else None
        return None if order is None else settings_in(order.argv, text, spec.config)
    except (OSError, UnicodeDecodeError, DeriveError):
        return None


def _model_section(spec: RunSpec) -> dict[str, Any]:
    """Settings in a section of a model; a bare ``width`` may be that of an image. The command line wins."""
    values: dict[str, Any] = {}
    config = config_in_command(spec).config
    if config is not None:
        try:
            values = dict(leaves(read_config(Path(spec.cwd, config))))
        except DeriveError:
            return {}
    words = [word[2:].partition("=") for word in spec.command if word.startswith("--")]
    for number, word in enumerate(spec.command[:-1]):
        if word.startswith("--") and "=" not in word:
            words.append((word[2:], "=", spec.command[number + 1]))
    values |= {name: value for name, equals, value in words if equals and "." in name}
    paths = {key: key.split(".") for key in values}
    return {path[-1]: values[key] for key, path in paths.items() if MODEL_SECTIONS.intersection(path[:-1])}


def _by_torch(path: Path, overview: CheckpointOverview, spec: RunSpec) -> dict[str, tuple[int, ...]]:
    python = interpreter(spec)
    files = [path] if path.is_file() else [path / member.name for member in overview.members]
    weights = [
        file for file in files if tensor_format(file.name) in {"torch", "maybe_torch"} and "optim" not in file.name
    ]
    if python is None or not weights:
        return {}
    largest = max(weights, key=lambda file: file.stat().st_size)
    return torch_shapes(python, largest, cwd=spec.cwd, env=spec.env) or {}


def _bare(key: str) -> str:
    key = key.replace(COMPILED, "")
    for wrapper in WRAPPERS:
        key = key.removeprefix(wrapper)
    return key


def _described(path: Path, held: Held) -> str:
    overview = show(path)
    parts = [f"{held.name}: {len(held.shapes)} tensors"]
    if overview is not None:
        parts += ["compiled (_orig_mod. keys)"] if overview.compiled else []
        parts.append("with optimizer state" if overview.has_optimizer else "without optimizer state")
        parts += ["with EMA"] if overview.has_ema else []
    return ", ".join(parts)
