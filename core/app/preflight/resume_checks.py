"""Checks of a resume: the checkpoint, its fit to model and data of the launch, and how the trainer is resumed."""

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ...act.config.derive import Derived, DeriveError
from ...act.config.trainer_config import config_in_command
from ...checkpoints.inspection import inspect
from ...checkpoints.listing import show
from ...model.checkpoint import Checkpoint, LoadRefusal
from ...model.preset import PLACEHOLDER, Preset
from ...model.run import VANISHED, LaunchOrder, RunSpec, is_below
from ...model.text import typed
from ...source import words
from ...source.trainer_source import source_of
from ...spool import read_order
from ...store.journal import load_story
from ...store.run_directory import RunDirectory
from ...views.length_words import resume_words, second_start_line
from ..plan.launch_plan import LaunchPlan, as_number, dotted_settings, settings_in, settings_of
from ..plan.resume_plan import rehearsed, rehearsed_words, setting_of, sources_of, weights_only_load
from ..plan.trainer_settings import plan_length
from ..runs.known_runs import runs_saving_to
from ..runs.output_folder import list_run_checkpoints
from .check import Check, Machine, failed, passed, warned
from .gpu_checks import torch_version
from .launch_checks import DATA_KEYS, looks_like_a_path, place_of

# The checkpoint that the person wrote into the command or config.

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
        if asks is not None and _lies_in_empty(plan, value):
            return warned(what, f"nothing to do at a first start: {asks} begins anew without it")
        if not (looks_like_a_path(value) or "/" in value or _LIKE_ONE.search(value)):
            return warned(what, f"nothing to do if it is no path; else: {see}")
        return failed(what, f"correct the path; {see}; without the option the training begins anew")
    return passed(", ".join(value for _, value, _ in found)) if found else None


def named_checkpoints(plan: LaunchPlan) -> list[tuple[str, str, Path | None]]:
    """(setting, value, where it is) of every checkpoint that a launch is told to resume from; None: nowhere."""
    found: list[tuple[str, str, Path | None]] = []
    for key, value in _given(plan):  # it starts at the working folder, or is a name in an output folder (diffusers)
        folders = [Path(plan.spec.cwd, folder) for folder in plan.spec.output_folders]
        there = (folder / name for folder in folders for name in (value, Path(value).name))
        found.append((key, value, place_of(plan, value) or next((place for place in there if place.exists()), None)))
    return found


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
    style = None if plan.spec.resume_way is None else plan.spec.resume_way.file
    own = style.args[0] if style is not None and style.args and not _OTHER.search(style.args[-1]) else ""
    option = own.lstrip("-").partition("=")[0].rpartition(".")[2].replace("-", "_") if own.startswith("-") else ""
    for key, value in plan.settings.items():
        if not isinstance(value, str) or (key != option and not _NAMES.fullmatch(key.lower())):
            continue
        leaves_it = value.lower() in words.NEWEST | {"", "none", "null", "false", "no", "never", "off", "0"}
        is_no_path = value.isdigit() or "://" in value or any(sign in value for sign in "{}$")
        if not (leaves_it or is_no_path or words.TRACKERS.search(key)):
            yield key, value


def _lies_in_empty(plan: LaunchPlan, value: str) -> bool:
    """Whether it lies where the trainer saves, and nothing was saved yet."""
    folders = [os.path.normpath(Path(plan.spec.cwd, folder)) for folder in plan.spec.output_folders]
    inside = any(is_below(os.path.normpath(Path(plan.spec.cwd, value)), folder) for folder in folders)
    return (inside or not folders) and not list_run_checkpoints(plan.spec, plan.preset).checkpoints


# Whether the run survives a crash: how its trainer is resumed.


def check_resume(plan: LaunchPlan, _machine: Machine) -> Check:
    """How the trainer is resumed after a crash. An option that its parser does not have ends each restart."""
    way = plan.spec.resume_way
    if plan.spec.resumes:
        return passed(resume_words(way))
    if way is not None and way.will == "no" and way.source == "command":
        return failed(way.how, "write {resume} behind an option that it has, or give it one (docs/how-to/resume.md)")
    lines = "the script needs a way to go on from a checkpoint: docs/how-to/resume.md has the lines"
    return warned(resume_words(way), lines)


def check_second_start(plan: LaunchPlan, machine: Machine) -> Check | None:
    """A restart does not delete what it is to resume from, and begins at all."""
    spec = plan.spec
    restarts = spec.resumes or spec.settings.restart.if_not_told == "go_on"
    styles = [each for each in (plan.preset.resume_file, plan.preset.resume_directory) if each is not None]
    texts = [word for style in styles for word in (*style.args, *style.env.values())]
    named = any("{path" in word for word in texts) or any(PLACEHOLDER in word for word in spec.command)
    takes_any_path = named or any(style.key is not None for style in styles)
    if spec.second_start.left and restarts and not takes_any_path:
        if proof := _went_on(plan, machine.run(spec)):
            return passed(f"{proof}, although its source reads as if it deleted that: {spec.second_start.left}")
        return failed(
            f"{spec.second_start.left}, and a restart finds its checkpoint only there",
            "start it so that it keeps the folder (`trainwatch rehearse` shows whether it does), or give the script an "
            "option for the path that it resumes from",
        )
    if spec.second_start.refuses:
        return warned(spec.second_start.refuses, "let it take a folder that is there when it resumes (exist_ok=True)")
    line = second_start_line(spec.second_start)
    return None if line is None else passed(line.removeprefix("Restart: "))


def _went_on(plan: LaunchPlan, run: RunDirectory) -> str:
    """Where this very command was seen to go on by itself from what it had saved, as a clause; "" if nowhere.

    In a rehearsal, or in the run itself after a failure: with the same words, variables and sources since.
    """
    spec, rehearsal = plan.spec, rehearsed(plan.spec)
    if rehearsal is not None and rehearsal.safe and rehearsal.will == "self":
        return rehearsed_words(spec) or ""
    story = load_story(run.journal)
    resumes = [i.closed_t for i in story.incidents if i.resumed_from is not None and i.closed_t is not None]
    by = next((a for a in reversed(story.attempts) if resumes and a.t <= max(resumes)), None)
    if by is None or plan.derived is None or any(i.class_ == VANISHED for i in story.incidents):
        return ""
    order, argvs = read_order(run.attempt(by.number)), [plan.derived.argv]
    argvs += [] if order is None else [order.argv]
    # each attempt has a derived copy of its config
    bare = [[Path(word).name if f"{run.attempts}/" in word else word for word in argv] for argv in argvs]
    same = bare[0] == bare[-1] and order is not None and run.load_spec().second_start.setting == setting_of(spec)
    try:
        same = same and all(Path(path).stat().st_ctime < by.wall for path in sources_of(spec))
    except OSError:
        return ""
    return f"attempt {by.number} went on by itself from what was saved" if same else ""


SAVE_EVERY = (
    "save_steps", "save_every_n_steps", "checkpointing_steps", "checkpoint_steps", "save_every", "save_interval",
    "checkpoint_every", "ckpt_every", "save_freq", "save_step", "save_every_n_epochs", "save_epochs",
    "save_every_epochs", "checkpointing_epochs", "save_epoch_freq",
)  # fmt: skip
SAVE_OR_NOT = ("save_strategy", "enable_checkpointing")
"""Settings of transformers and Lightning that switch saving off."""
WEIGHTS_ONLY = ("save_only_model", "save_weights_only", "save_model_only", "only_save_model")
"""Settings that leave the state of the optimizer out of the checkpoints."""


def check_saves(plan: LaunchPlan, _machine: Machine) -> Check | None:
    """The first checkpoint comes before the end, and holds what a resume needs."""
    told, source = plan_length(plan), source_of(plan.spec)
    often, own, late = "save more often: a crash before the end loses everything", source.number_of, list[str]()
    if off := next((key for key in SAVE_OR_NOT if str(plan.settings.get(key)).lower() in {"no", "false"}), ""):
        return warned(f"{off} = {plan.settings[off]}: no checkpoint is written", often)
    for name in SAVE_EVERY:
        if every := plan.number(name) or (own[name].value if name in own else None):
            about = f"{name} {source.said_of(name)}".lower()
            unit = "epoch" if "epoch" in about and not re.search(r"step|iter|batch|len\(", about) else "step"
            total = told.epochs if unit == "epoch" else told.steps
            what = f"{name} = {every:g}: the first checkpoint comes after the end ({unit} {total})"
            late.append(what if total and every > total else "")
    if late and all(late):
        return warned(late[0], often)
    if (key := next((key for key in WEIGHTS_ONLY if plan.truth(key)), None)) is not None:
        return warned(f"{key} leaves the optimizer out", "leave it out: a resume begins with a new optimizer otherwise")
    if (key := plan.preset.state_key) and "--resume" in plan.spec.command and not plan.truth(key):
        return warned(f"--resume needs a saved state, and {key} is not on", f"add --{key}")
    return None


# Whether the trainer's torch would load what the newest checkpoint holds.

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
    if load is None:
        return None
    version = re.search(r"__version__ = '(\d+)\.(\d+)", torch_version(spec))
    known = version is not None and (int(version[1]), int(version[2])) >= WEIGHTS_ONLY_SINCE
    if not load.explicit and (not known or {**os.environ, **spec.env}.get(NOT_WEIGHTS_ONLY)):
        return None
    return LoadRefusal(place=load.place, objects=checkpoint.objects, explicit=load.explicit)


# The data set of a launch, against that of the last one.

SHOWN = 4


def check_data_changed(plan: LaunchPlan, machine: Machine) -> Check | None:
    """The data set is that of the last launch. A saved loader state does not fit another one."""
    others = (run for run, _ in runs_saving_to(plan.spec)) if plan.begins != "" else ()
    folders = (folder for run in chain((machine.run(plan.spec),), others) for folder in run.attempt_folders())
    last = next(((each, order) for each in folders if (order := read_order(each)) is not None), None)
    before = None if last is None else _launch_settings(*last, plan.spec)
    if before is None:
        return None
    changed = [
        f"{key} was {before[key]}, is now {plan.settings[key]}"
        for key in sorted(DATA_KEYS & before.keys() & plan.settings.keys())
        if str(before[key]) != str(plan.settings[key])
    ]
    if not changed:
        return passed("as at the last launch")
    return warned(
        f"changed since the last launch: {'; '.join(changed[:SHOWN])}",
        "a saved loader state and the step within the epoch belong to the old data: resume from weights, or start "
        "a new epoch",
    )


def _launch_settings(folder: Path, order: LaunchOrder, spec: RunSpec) -> dict[str, Any] | None:
    """All settings of a launch, by bare name; None when they cannot be read."""
    config = config_in_command(spec).config
    copy = None if config is None else folder / Path(config).name
    try:
        text = copy.read_text(encoding="utf-8") if copy is not None and copy.is_file() else None
        return settings_in(order.argv, text, config)
    except (OSError, UnicodeDecodeError, DeriveError):
        return None


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
    """What a checkpoint holds. ``shapes``: by key, without ``torch.compile``'s prefix; ``config``: its config.json.

    ``described``: in words.
    """

    name: str
    shapes: Mapping[str, tuple[int, ...]] = {}
    metadata: Mapping[str, str] = {}
    config: Mapping[str, Any] = {}
    described: str = ""


class Misfit(NamedTuple):
    """One contradiction. ``fatal``: the trainer will refuse the checkpoint; else it only differs."""

    key: str
    held: str
    wanted: str
    fatal: bool = True

    @property
    def sentence(self) -> str:
        return f"{self.key} is {self.wanted} in the config and {self.held} in the checkpoint"


def misfits(
    held: Held, settings: Mapping[str, Any], model: Mapping[str, Any], config: Mapping[str, Any]
) -> tuple[Misfit, ...]:
    """Every certain contradiction, fatal ones first.

    ``settings``: all of the launch by bare name; ``model``: those of a model section; ``config``: config.json of the
    base model.
    """
    found = [*_lora(held, settings), *_shape(held, settings, model)]
    both = [key for key in HF_KEYS if key in held.config and key in config]
    found += [Misfit(k, str(held.config[k]), str(config[k])) for k in both if held.config[k] != config[k]]
    return tuple(sorted(found, key=lambda misfit: not misfit.fatal))


def _read_config_json(folder: Path) -> dict[str, Any]:
    """``config.json`` in a folder; empty if there is none that can be read."""
    path = folder / "config.json"
    try:
        content = {} if path.stat().st_size > CONFIG_BYTES else json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _lora(held: Held, settings: Mapping[str, Any]) -> Iterator[Misfit]:
    """Kohya: rank and module of the network, by the file's own metadata or its shapes."""
    if str(settings.get("dim_from_weights", "no")).lower() in {"true", "1", "yes", ""}:
        return
    ranks = {shape[0] for key, shape in held.shapes.items() if _RANK.search(key) and len(shape) == 2}
    rank = next(iter(ranks)) if len(ranks) == 1 else None if ranks else as_number(held.metadata.get("ss_network_dim"))
    alpha = as_number(held.metadata.get("ss_network_alpha"))
    for key, stored, fatal in (("network_dim", rank, True), ("network_alpha", alpha, False)):
        asked = as_number(settings.get(key))
        if stored is not None and asked is not None and asked != stored:
            yield Misfit(key, f"{stored:g}", f"{asked:g}", fatal)
    module, meant = held.metadata.get("ss_network_module"), settings.get("network_module")
    if module and isinstance(meant, str) and meant != module:
        yield Misfit("network_module", module, meant)


def _shape(held: Held, settings: Mapping[str, Any], model: Mapping[str, Any]) -> Iterator[Misfit]:
    """Widths, depth and patches of a model whose layers are numbered, or have all one width; nothing of a LoRA."""
    matrices = [shape for shape in held.shapes.values() if len(shape) >= 2]
    if any("lora_" in key for key in held.shapes) or len(matrices) < FEWEST_OF_ONE_WIDTH:
        return
    lengths = [length for shape in held.shapes.values() for length in shape]
    widths = {n for shape in matrices for n in shape[:2] if n > FEW_CHANNELS}
    kernels = {shape[2:] for key, shape in held.shapes.items() if _PATCHES.search(key) and len(shape) == 4}
    named = {key: (key, settings[key]) for key in (WIDTHS | OWN_CHANNELS) & settings.keys()}
    for key, (name, value) in (named | {key: (f"model.{key}", value) for key, value in model.items()}).items():
        number, stored = as_number(value), ""
        if number is None:
            continue
        if key in CHANNELS and number > FEW_CHANNELS and widths and number not in widths:
            if len(widths) == 1 or not any(width % number == 0 for width in widths):
                stored = f"{'' if len(widths) == 1 else 'probably '}{min(widths)}"
        elif len(matrices) < FEWEST or number != int(number):
            continue
        elif key in WIDTHS and number > 1 and number not in lengths:
            stored = f"probably {max(dict.fromkeys(n for n in lengths if n > 1), key=lengths.count, default=0)}"
        elif key in DEPTHS and number > 1 and (count := _depth(held.shapes)) not in {None, number}:
            stored = f"{count}"
        elif key == "patch_size" and len(kernels) == 1 and (kernel := next(iter(kernels))) != (number, number):
            stored = "x".join(map(str, kernel))
        if stored:
            yield Misfit(name, stored, f"{number:g}")


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


MODEL_SECTIONS = frozenset({"model", "model_config", "network", "transformer", "unet"})
COMPILED = "_orig_mod."
WRAPPERS = ("module.", "model_state_dict.", "state_dict.", "model.")


def check_model(plan: LaunchPlan, _machine: Machine) -> Check | None:
    """The model that the launch builds can load the checkpoint that it resumes from."""
    point = point_of(plan)
    held = None if point is None else held_in(point)
    if held is None:
        return None
    found = _misfits_of(held, plan.spec, plan.settings)
    changed, anew = f"config changed since {held.name}: {_summary(found)}", typed("resume", plan.spec.id, "--fresh")
    if any(misfit.fatal for misfit in found):
        return failed(changed, f"put the old values back, or begin anew in another output_dir: {anew}")
    if found:
        return warned(changed, "nothing to do if this is intended")
    return passed(f"{held.described}; nothing in the config contradicts it")


def resume_misfit(spec: RunSpec, point: Path, derived: Derived) -> str | None:
    """Why the planned launch cannot load this checkpoint; None if nothing is certain. Takes milliseconds."""
    held = held_in(point)
    if held is None:
        return None
    found = [misfit for misfit in _misfits_of(held, spec, settings_of(spec, derived)) if misfit.fatal]
    return f"the config does not fit {held.name}: {_summary(found)}" if found else None


def _misfits_of(held: Held, spec: RunSpec, settings: Mapping[str, Any]) -> tuple[Misfit, ...]:
    """The checkpoint against the model that the launch builds, as far as its config describes it."""
    base = settings.get("config_name") or settings.get("model_name_or_path")
    folder = Path(spec.cwd, base) if isinstance(base, str) and base else None
    config = _read_config_json(folder) if folder is not None and folder.is_dir() else {}
    return misfits(held, settings, _model_section(spec), config)


def _summary(found: Iterable[Misfit]) -> str:
    sentences = [misfit.sentence for misfit in found]
    more = f" and {len(sentences) - SHOWN} more" if len(sentences) > SHOWN else ""
    return "; ".join(sentences[:SHOWN]) + more


def held_in(path: Path) -> Held | None:
    """The contents of a checkpoint; None if it cannot be read here."""
    try:
        overview = show(path)
    except OSError:
        return None
    if overview is None:
        return None
    shapes: dict[str, tuple[int, ...]] = {}
    for tensor in overview.tensors:
        key = tensor.name.replace(COMPILED, "")
        for wrapper in WRAPPERS:
            key = key.removeprefix(wrapper)
        shapes[key] = tensor.shape
    config = _read_config_json(path) if path.is_dir() else {}
    if not (shapes or overview.metadata or config):
        return None
    name, compiled = overview.checkpoint.name, ", compiled (_orig_mod. keys)" if overview.compiled else ""
    state = f"with{'' if overview.has_optimizer else 'out'} optimizer state{', with EMA' if overview.has_ema else ''}"
    described = f"{name}: {len(shapes)} tensors{compiled}, {state}"
    return Held(name=name, shapes=shapes, metadata=overview.metadata, config=config, described=described)


def _model_section(spec: RunSpec) -> dict[str, Any]:
    """Settings in a section of a model; a bare ``width`` may be that of an image. The command line wins."""
    config = config_in_command(spec).config
    try:
        text = None if config is None else Path(spec.cwd, config).read_text(encoding="utf-8-sig")
        found = dotted_settings(spec.command, text, config)
    except (OSError, UnicodeDecodeError, DeriveError):
        return {}
    paths = {tuple(key.split(".")): value for key, value in found.items()}
    return {path[-1]: value for path, value in paths.items() if MODEL_SECTIONS.intersection(path[:-1])}
