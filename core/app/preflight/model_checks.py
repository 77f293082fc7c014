"""Checks of a resume: the model of the launch against the checkpoint, the data against those of the last launch."""

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ...act.config.derive import Derived, DeriveError, read_config
from ...act.config.edits import leaves
from ...act.config.trainer_config import config_in_command
from ...act.launch.spool import read_order
from ...checkpoints import CheckpointOverview, show
from ...model.checkpoint_files import tensor_format
from ...model.run import RunSpec
from ...model.suggestion import typed
from ...store.run_directory import RunDirectory
from ..plan.launch_plan import LaunchPlan, settings_in, settings_of
from ..runs.known_runs import all_runs
from .check import Check, Machine, failed, passed, warned
from .checkpoint_checks import count_files, difference, keep_inventory, point_of, read_inventory, torch_shapes
from .gpu_checks import interpreter
from .launch_checks import DATA_KEYS

# Whether the model that a launch would build fits the checkpoint that it would resume from.
#
# Only certain contradictions are reported: a checkpoint holds names and shapes, a config holds numbers whose meaning
# depends on the trainer's code. So a number is contradicted only if nothing in the checkpoint has it, or if the
# checkpoint itself contains another one.

WIDTHS = frozenset({"hidden_size", "embed_dim", "d_model", "n_embd", "model_dim"})
"""The hidden size of a transformer: norms, biases and inputs of layers have this length."""
OWN_CHANNELS = frozenset({"base_channels", "model_channels", "init_channels", "hidden_channels"})
"""The same by names that say so also outside a section of the model (``--init_channels 16``)."""
CHANNELS = frozenset({"channels", "num_channels", "n_channels", "ch", "dim", *OWN_CHANNELS})
"""A width that some layers multiply: contradicted if the checkpoint has one length only, or none that it divides."""
FEW_CHANNELS = 8
"""A length up to this may be the channels of an image, a kernel size, or a pair of numbers."""
FEWEST_OF_ONE_WIDTH = 4
FEWEST = 8
"""With fewer matrices, a missing length is no contradiction: the checkpoint may be flattened or a fragment."""
DEPTHS = frozenset({"depth", "num_layers", "n_layer", "n_layers", "num_hidden_layers"})
HF_KEYS = (
    "model_type", "hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads",
    "intermediate_size", "vocab_size", "d_model", "n_embd", "n_layer", "n_head",
)  # fmt: skip
CONFIG_BYTES = 1 << 20
_NUMBERED = re.compile(r"^(?P<group>.*?\b(?:blocks|layers|h|transformer_blocks))\.(?P<number>\d+)\.")
_PATCHES = re.compile(r"(?:^|\.)(?:patch_embed|x_embedder|patch_embedding)\b.*weight$")
_RANK = re.compile(r"lora_(?:down|A)(?:\.default)?\.weight$")


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """What a checkpoint holds. ``shapes``: by key, without ``torch.compile``'s prefix; ``config``: its config.json."""

    name: str
    shapes: Mapping[str, tuple[int, ...]] = {}
    metadata: Mapping[str, str] = {}
    config: Mapping[str, Any] = {}


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What the launch would build. ``model``: settings of a model section by bare name; ``settings``: all of them.

    ``config``: config.json of the base model.
    """

    model: Mapping[str, Any] = {}
    settings: Mapping[str, Any] = {}
    config: Mapping[str, Any] = {}


class Misfit(msgspec.Struct, frozen=True, kw_only=True):
    """One contradiction. ``fatal``: the trainer will refuse the checkpoint; else it only differs."""

    key: str
    held: str
    wanted: str
    fatal: bool = True

    @property
    def sentence(self) -> str:
        return f"{self.key} is {self.wanted} in the config and {self.held} in the checkpoint"


def misfits(held: Held, wanted: Wanted) -> tuple[Misfit, ...]:
    """Every certain contradiction, fatal ones first."""
    found = [*_lora(held, wanted), *_hub(held, wanted), *_sections(held, wanted)]
    return tuple(sorted(found, key=lambda misfit: not misfit.fatal))


def read_config_json(folder: Path) -> dict[str, Any]:
    """``config.json`` in a folder; empty if there is none that can be read."""
    path = folder / "config.json"
    try:
        if path.stat().st_size > CONFIG_BYTES:
            return {}
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _lora(held: Held, wanted: Wanted) -> Iterator[Misfit]:
    """Kohya: rank and module of the network, by the file's own metadata or its shapes."""
    if _true(wanted.settings.get("dim_from_weights")):
        return
    ranks = {shape[0] for key, shape in held.shapes.items() if _RANK.search(key) and len(shape) == 2}
    stored = _number(held.metadata.get("ss_network_dim"))
    rank = next(iter(ranks)) if len(ranks) == 1 else stored if not ranks else None
    asked = _number(wanted.settings.get("network_dim"))
    if rank is not None and asked is not None and asked != rank:
        yield Misfit(key="network_dim", held=f"{rank:g}", wanted=f"{asked:g}")
    module, meant = held.metadata.get("ss_network_module"), wanted.settings.get("network_module")
    if module and isinstance(meant, str) and meant != module:
        yield Misfit(key="network_module", held=module, wanted=meant)
    alpha, aimed = _number(held.metadata.get("ss_network_alpha")), _number(wanted.settings.get("network_alpha"))
    if alpha is not None and aimed is not None and alpha != aimed:
        yield Misfit(key="network_alpha", held=f"{alpha:g}", wanted=f"{aimed:g}", fatal=False)


def _hub(held: Held, wanted: Wanted) -> Iterator[Misfit]:
    """Transformers: two config.json files."""
    for key in HF_KEYS:
        if key in held.config and key in wanted.config and held.config[key] != wanted.config[key]:
            yield Misfit(key=key, held=str(held.config[key]), wanted=str(wanted.config[key]))


def _sections(held: Held, wanted: Wanted) -> Iterator[Misfit]:
    matrices = [shape for shape in held.shapes.values() if len(shape) >= 2]
    yield from _channels(held, wanted, matrices)
    if len(matrices) < FEWEST or any("lora_" in key for key in held.shapes):
        return
    sizes = {length for shape in held.shapes.values() for length in shape}
    flat = {key: value for key, value in wanted.settings.items() if key in WIDTHS and key not in wanted.model}
    for key, value in (*wanted.model.items(), *flat.items()):
        number = _number(value)
        if number is None or number <= 1 or number != int(number):
            continue
        if key in WIDTHS and number not in sizes:
            name = key if key in flat else f"model.{key}"
            yield Misfit(key=name, held=f"probably {_commonest(held.shapes)}", wanted=f"{int(number)}")
        if key in DEPTHS and (count := _depth(held.shapes)) is not None and count != number:
            yield Misfit(key=f"model.{key}", held=f"{count}", wanted=f"{int(number)}")
    patch = _number(wanted.model.get("patch_size"))
    kernels = {shape[2:] for key, shape in held.shapes.items() if _PATCHES.search(key) and len(shape) == 4}
    if patch is not None and len(kernels) == 1 and next(iter(kernels)) != (int(patch), int(patch)):
        yield Misfit(key="model.patch_size", held="x".join(map(str, next(iter(kernels)))), wanted=f"{int(patch)}")


def _channels(held: Held, wanted: Wanted, matrices: list[tuple[int, ...]]) -> Iterator[Misfit]:
    """A model whose layers all have one width, or none that is a multiple of the number: it cannot load its weights."""
    widths = {length for shape in matrices for length in shape[:2] if length > FEW_CHANNELS}
    if len(matrices) < FEWEST_OF_ONE_WIDTH or not widths or any("lora_" in key for key in held.shapes):
        return
    flat = {key: wanted.settings[key] for key in OWN_CHANNELS & wanted.settings.keys()}
    given = {key: (value, key) for key, value in flat.items()}
    given |= {key: (wanted.model[key], f"model.{key}") for key in CHANNELS & wanted.model.keys()}
    for _, (value, name) in sorted(given.items()):
        number = _number(value)
        if number is None or number <= FEW_CHANNELS:
            continue
        if number not in widths and (len(widths) == 1 or not any(width % number == 0 for width in widths)):
            yield Misfit(
                key=name,
                held=("" if len(widths) == 1 else "probably ") + f"{min(widths)}",
                wanted=f"{number:g}",
            )


def _depth(shapes: Mapping[str, tuple[int, ...]]) -> int | None:
    """How many numbered blocks there are, if there is one stack of them, numbered from 0 without a gap."""
    stacks: dict[str, set[int]] = {}
    for key in shapes:
        if (found := _NUMBERED.match(key)) is not None:
            stacks.setdefault(found["group"], set()).add(int(found["number"]))
    if len(stacks) != 1:
        return None
    numbers = next(iter(stacks.values()))
    return len(numbers) if numbers == set(range(len(numbers))) else None


def _commonest(shapes: Mapping[str, tuple[int, ...]]) -> int:
    counted: dict[int, int] = {}
    for shape in shapes.values():
        for length in shape:
            counted[length] = counted.get(length, 0) + (length > 1)
    return max(counted, key=lambda length: counted[length], default=0)


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except ValueError:
        return None


def _true(value: object) -> bool:
    return value is not None and str(value).lower() in {"true", "1", "yes", ""}


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
        return failed(f"config changed since {held.name}: {summary(found)}",
            f"put the old values back, or begin anew in another output_dir: {anew}",
        )  # fmt: skip
    if found:
        return warned(f"config changed since {held.name}: {summary(found)}", "nothing to do if this is intended")
    return passed(f"{_described(point, held)}; nothing in the config contradicts it")


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
            f"changed since the last launch: {'; '.join(changed[:SHOWN])}",
            "a saved loader state and the step within the epoch belong to the old data: resume from weights, or start "
            "a new epoch",
        )
    return passed("as at the last launch")


def _of_same_folder(spec: RunSpec) -> Iterator[RunSpec]:
    """Runs that saved into this run's output folder, newest first: what it goes on from may be theirs."""
    wanted = None if spec.output_dir is None else os.path.realpath(Path(spec.cwd, spec.output_dir))
    for run in all_runs() if wanted is not None else ():
        other = run.load_spec()
        if other.output_dir and os.path.realpath(Path(other.cwd, other.output_dir)) == wanted and run.attempt_folders():
            yield other


def data_paths(spec: RunSpec, settings: Mapping[str, Any]) -> tuple[str, ...]:
    named = (settings[key] for key in sorted(DATA_KEYS & settings.keys()))
    return tuple(str(Path(spec.cwd, name)) for name in named if isinstance(name, str) and name and "://" not in name)


def remember_data(spec: RunSpec, folder: Path, derived: Derived) -> None:
    """Write down how large the data set of this launch is. Raises OSError."""
    keep_inventory(folder, dict.fromkeys(data_paths(spec, settings_of(spec, derived))))


def summary(found: Sequence[Misfit]) -> str:
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
