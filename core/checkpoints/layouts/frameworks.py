"""Checkpoint folders of accelerate, transformers and DeepSpeed, with their shards."""

import re
from pathlib import PurePosixPath

from ...model.checkpoint_files import SHARD, NameCounts
from ...model.checkpoint_suffixes import INDEX_SUFFIX
from ..formats.byte_range import Corrupt, Damage, NoCounts, Torn
from ..formats.tensor_file import read_json, whole_number
from ..formats.tensors import Mapping, shown
from .layout_reading import WRITTEN_LAST, Finding, Findings, missing, no_weights, optimizer_in, read_counts, weights_in
from .sets import LATEST, Members, read_pointer, series_of

# State directories of ``accelerator.save_state``, and kohya's ``NAME-000004-state``, which are the same.
#
# Written in this order (``accelerate/checkpointing.py``): weights, ``optimizer.bin``, ``scheduler.bin``,
# ``sampler.bin``, scaler, and last ``random_states_0.pkl``. kohya's hook adds ``train_state.json`` before.

STATE = "train_state.json"
_LAST = re.compile(r"^random_states_\d+\.pkl$")
_TRACES = re.compile(r"^(random_states_\d+\.pkl|optimizer(_\d+)?\.bin|sampler(_\d+)?\.bin|train_state\.json)$")
_STATE_NAME = re.compile(r"-state$")


def _without_weights(members: Members, findings: Findings, state: str, *, made_so: bool) -> list[Damage]:
    if any(weights_in(members)):
        return []
    tensors, why = made_so or bool(findings), "no file with weights is there"
    return [no_weights(members, "model.safetensors", why, beside=state, made_so=tensors)]


def read_accelerate(members: Members, findings: Findings) -> Finding | None:
    """Recognised by any file that only accelerate or kohya writes, or, with weights, by the name ``*-state``."""
    made_so = any(_TRACES.match(name) for name in members.top())
    if not made_so and not (_STATE_NAME.search(members.root.name) and any(weights_in(members))):
        return None
    damages = _without_weights(members, findings, STATE, made_so=made_so)
    if not optimizer_in(members):
        damages.append(missing(members, "optimizer.bin", "training cannot go on without it"))
    if not any(_LAST.match(name) for name in members.top()):
        damages.append(missing(members, "random_states_0.pkl", WRITTEN_LAST, unfinished=made_so))
    counts = read_counts(members, STATE, damages)
    return Finding(layout="accelerate", damages=tuple(damages), counts=counts)


# ``checkpoint-N`` of the Hugging Face Trainer.
#
# Written in this order (``Trainer._save_checkpoint``): weights, ``training_args.bin``, optimizer, scheduler, RNG
# state, and last ``trainer_state.json``. With ``save_only_model`` there is neither optimizer nor scheduler nor RNG
# state.

TRANSFORMERS_STATE = "trainer_state.json"
_TRANSFORMERS_TRACES = re.compile(r"^(training_args\.bin|rng_state.*\.pth)$")
"""What only this trainer writes. Any trainer may call its files ``optimizer.pt`` and ``scheduler.pt``."""
_SCHEDULERS = ("scheduler.pt", "scheduler.bin")
_RESUMABLE = re.compile(r"^(rng_state.*\.pth|optimizer\.(pt|bin)|scheduler\.pt|scaler\.pt)$")


def read_transformers(members: Members, findings: Findings) -> Finding | None:
    """Recognised by ``trainer_state.json`` or anything else that only this trainer writes."""
    made_so = any(_TRANSFORMERS_TRACES.match(name) for name in members.top())
    if TRANSFORMERS_STATE not in members.files and not made_so:
        return None
    damages = _without_weights(members, findings, TRANSFORMERS_STATE, made_so=made_so)
    notes: list[str] = []
    resumable = any(_RESUMABLE.match(name) for name in members.top())
    deepspeed = any(folder.startswith("global_step") for folder in members.folders)
    if deepspeed:
        damages.extend(check_latest(members))
    elif not resumable:
        notes.append("weights only, saved without optimizer state")
    elif not optimizer_in(members):
        damages.append(missing(members, "optimizer.pt", "scheduler or RNG state was saved with it"))
    elif not members.has(*_SCHEDULERS):
        # Another trainer may have none: then no save of its series has one.
        others = [any((each / name).exists() for name in _SCHEDULERS) for each in series_of(members.root)]
        if any(others) or (made_so and not others):
            damages.append(missing(members, "scheduler.pt", "without it the trainer ignores the optimizer state too"))
        else:
            notes.append("saved without a scheduler")
    counts = read_counts(members, TRANSFORMERS_STATE, damages)
    if TRANSFORMERS_STATE not in members.files:
        damages.append(missing(members, TRANSFORMERS_STATE, WRITTEN_LAST, unfinished=True))
    return Finding(layout="transformers", damages=tuple(damages), notes=tuple(notes), counts=counts)


# DeepSpeed: ``global_stepN/`` with ``mp_rank_*_model_states.pt`` and a ``*_optim_states.pt`` for each rank of ZeRO.
#
# ``latest`` beside the tag folders names the newest finished one and is written after all ranks are done.
# Source: ``deepspeed/runtime/engine.py`` (``save_checkpoint``, ``_get_all_zero_checkpoint_names``).

_MODEL = re.compile(r"^(?:zero_pp_rank_(?P<dp>\d+)_)?mp_rank_(?P<mp>\d+)_model_states\.pt$")
_OPTIMIZER = re.compile(r"^(?P<kind>bf16_|fp16_)?zero_pp_rank_(?P<dp>\d+)_mp_rank_(?P<mp>\d+)_optim_states\.pt$")
TAG = re.compile(r"^global_step\d+$")
"""What its tag folders are called if the trainer gives no name."""


def read_deepspeed(members: Members, findings: Findings) -> Finding | None:
    """A tag folder: recognised by its model states. All its data-parallel ranks must be there."""
    models = {name: match for name in members.top() if (match := _MODEL.match(name))}
    matches = [match for name in members.top() if (match := _OPTIMIZER.match(name))]
    optimizers = {(int(match["dp"]), int(match["mp"])) for match in matches}
    kind = next((match["kind"] for match in matches if match["kind"]), "")
    if not models and not optimizers:
        return None
    damages: list[Damage] = []
    if not models:
        damages.append(Torn("mp_rank_00_model_states.pt is missing: it holds the weights", understood=False))
    step: int | None = None
    for name, match in models.items():
        finding = findings.get(name)
        tree = finding.contents.tree if finding is not None and finding.contents is not None else None
        if not isinstance(tree, Mapping):
            continue
        step = whole_number(tree.texts, ("global_steps", "global_step")) if step is None else step
        damages.extend(_missing_ranks(tree, int(match["mp"]), optimizers, kind))
    ranks = sorted(optimizers)
    if ranks:
        expected = {(dp, mp) for dp in range(ranks[-1][0] + 1) for mp in {mp for _, mp in ranks}}
        damages.extend(_missing_rank(rank, kind) for rank in sorted(expected - optimizers)[:1])
    return Finding(layout="deepspeed", damages=tuple(damages), counts=NameCounts(step))


def read_deepspeed_save(members: Members, findings: Findings) -> Finding | None:
    """The folder of the tags, which is what loading is given: what ``latest`` names must be there, with all its ranks.

    Recognised by a tag folder with model or optimizer states, or by ``latest`` with the name of a usual tag.
    """
    inner = [name.partition("/")[2] for name in members.files]
    tagged = any(_MODEL.match(name) or _OPTIMIZER.match(name) for name in inner)
    named = read_pointer(members.root / LATEST) if LATEST in members.files else None
    if not tagged and not (named is not None and TAG.match(named)):
        return None
    damages = check_latest(members)
    if damages or named is None:
        return Finding(layout="deepspeed", damages=tuple(damages))
    held = {name.removeprefix(f"{named}/"): found for name, found in findings.items() if name.startswith(f"{named}/")}
    newest = read_deepspeed(members.under(named), held)
    if newest is None:
        nothing = Torn(f"{named}, which {LATEST} names, holds no states of DeepSpeed", understood=False)
        return Finding(layout="deepspeed", damages=(nothing,))
    return Finding(
        layout="deepspeed", damages=tuple(damage.within(named) for damage in newest.damages), counts=newest.counts
    )


def check_latest(members: Members) -> list[Damage]:
    """A folder that holds tag folders: ``latest`` must name one that is there. Loading reads it first."""
    if LATEST not in members.files:
        return [Torn(f"latest is missing: {WRITTEN_LAST}", unfinished=True)]
    tag = read_pointer(members.root / LATEST)
    if tag is None or tag not in members.folders:
        return [Torn(f"latest names {shown(tag or 'nothing')}, which does not exist", understood=False)]
    return []


def _missing_ranks(tree: Mapping, mp: int, optimizers: set[tuple[int, int]], kind: str) -> list[Damage]:
    """ZeRO keeps the optimizer out of the model states: then each rank must have its own file."""
    ranks = whole_number(tree.texts, ("dp_world_size",))
    if ranks is None or tree.get("optimizer") is not None or not (optimizers or "optimizer" in tree.texts):
        return []
    absent = [rank for dp in range(min(ranks, 100_000)) if (rank := (dp, mp)) not in optimizers]
    return [_missing_rank(absent[0], kind)] if absent else []


def _missing_rank(rank: tuple[int, int], kind: str) -> Torn:
    name = f"{kind}zero_pp_rank_{rank[0]}_mp_rank_{rank[1]:02d}_optim_states.pt"
    return Torn(f"{name} is missing: every rank must have saved", understood=False)


# ``model.pt``, ``optimizer.pt``, ``training_state.json``, and ``scheduler.pt`` and ``ema_model.pt`` if in use.
#
# Other trainers keep files of these names in folders of their own making. What the layout demands is demanded only if
# the preset names the layout, or if the folder holds what only its trainer writes together.

LAYOUT = "training_state"
TRAINING_STATE_STATE = "training_state.json"
MODEL = "model.pt"
OPTIMIZER = "optimizer.pt"
SCHEDULER = "scheduler.pt"
EMA = "ema_model.pt"
_TRAINING_STATE_MODEL = re.compile(r"^(pytorch_)?model")


def read_training_state(members: Members, findings: Findings) -> Finding | None:
    """Recognised by its state file or model.

    Without the state file the trainer counts on from the name; with it the optimizer must be there, too.
    """
    if not members.has(TRAINING_STATE_STATE, MODEL):
        return None
    # Whether it holds together what only the trainer of this layout writes, or the preset names the layout.
    together = members.has(EMA) or (members.has(MODEL) and members.has(SCHEDULER))
    made_so = members.layout == LAYOUT or (members.has(TRAINING_STATE_STATE) and together)
    damages: list[Damage] = []
    notes: list[str] = []
    counts = read_counts(members, TRAINING_STATE_STATE, damages)
    damages = [damage for damage in damages if made_so or not isinstance(damage, NoCounts)]
    if TRAINING_STATE_STATE not in members.files and (made_so or members.has(SCHEDULER, EMA, OPTIMIZER)):
        notes.append(f"{TRAINING_STATE_STATE} is missing: step and epoch are taken from the name")
    contents = None if made_so else findings  # its trainer goes by the names
    weights = [name.rpartition("/")[2] for name in weights_in(members, contents)]
    # Others keep such a state file beside weights of their own names, and an optimizer that is not this layout's.
    foreign = TRAINING_STATE_STATE in members.files and not (made_so and members.has(OPTIMIZER))
    unfinished = made_so and TRAINING_STATE_STATE not in members.files
    if not weights or not (foreign or any(_TRAINING_STATE_MODEL.match(name) for name in weights)):
        tensors, why = made_so or bool(findings), "it holds the weights"
        damages.append(
            no_weights(members, MODEL, why, beside=TRAINING_STATE_STATE, made_so=tensors, unfinished=unfinished)
        )
    if not optimizer_in(members, contents):
        if made_so:
            why = "training cannot go on without it"
            damages.append(missing(members, OPTIMIZER, why, unfinished=unfinished))
        else:
            notes.append("no optimizer state of a known name is in it")
    return Finding(layout=LAYOUT, damages=tuple(damages), notes=tuple(notes), counts=counts)


# Weights in several files: ``model-00001-of-00003.safetensors`` … and ``model.safetensors.index.json``.
#
# The index maps each tensor to its file and is written last. Source: ``save_pretrained`` (transformers, diffusers).


def shards_of(members: Members, index: str) -> set[str]:
    """The files that an index names. Raises Torn, Corrupt, FileNotFoundError."""
    folder = index.rpartition("/")[0]
    return {f"{folder}/{shard}" if folder else shard for shard in set(read_index(members, index).values())}


def read_index(members: Members, index: str) -> dict[str, str]:
    """Tensor name → file name beside the index. Raises Torn, Corrupt, FileNotFoundError."""
    weight_map = read_json(members.files[index].path, "an index", cut=Corrupt).get("weight_map")
    if not isinstance(weight_map, dict) or not all(isinstance(file, str) for file in weight_map.values()):
        raise Corrupt("its weight_map is not a table of file names")
    for file in weight_map.values():
        if file.startswith("/") or ".." in PurePosixPath(file).parts or not file.isprintable() or not file:
            raise Corrupt(f"names a file outside of its directory: {shown(file)}")
    return weight_map


def check_shards(members: Members, findings: Findings) -> list[Damage]:
    """Every index: its files exist and hold the tensors it lists. Every shard: its set is complete and indexed."""
    damages: list[Damage] = []
    indexed: set[str] = set()
    for index in [name for name in members.files if name.endswith(INDEX_SUFFIX)]:
        folder = index.rpartition("/")[0]
        try:
            weight_map = read_index(members, index)
        except (Damage, FileNotFoundError) as why:
            damages.append(why.within(index) if isinstance(why, Damage) else Torn(f"{index} was removed"))
            continue
        by_file: dict[str, set[str]] = {}
        for tensor, file in weight_map.items():
            by_file.setdefault(f"{folder}/{file}" if folder else file, set()).add(tensor)
        indexed.update(by_file)
        damages.extend(_check_files(members, findings, by_file, index))
    damages.extend(_check_numbers(members, indexed))
    return damages


def _check_files(members: Members, findings: Findings, by_file: dict[str, set[str]], index: str) -> list[Damage]:
    damages: list[Damage] = []
    for file, tensors in sorted(by_file.items()):
        if file not in members.files:
            damages.append(Torn(f"{shown(file)} is missing: {index} needs it"))
            continue
        finding = findings.get(file)
        if finding is None or finding.contents is None:
            continue  # its own damage is reported where it was read
        absent = tensors - {tensor.name for tensor in finding.contents.tensors}
        if absent:
            damages.append(Corrupt(f"{file}: tensor {shown(min(absent))}, which {index} places there, is missing"))
    return damages


def _check_numbers(members: Members, indexed: set[str]) -> list[Damage]:
    """Numbered shards that no index names: written without it yet, or the index was lost."""
    damages: list[Damage] = []
    seen: set[tuple[str, str]] = set()
    for name in members.files:
        folder, _, base = name.rpartition("/")
        match = SHARD.match(base)
        if not match or name in indexed or (folder, match["stem"]) in seen:
            continue
        seen.add((folder, match["stem"]))
        index = f"{match['stem']}{match['suffix']}{INDEX_SUFFIX}"
        where = f"{folder}/{index}" if folder else index
        total = int(match["total"])
        if where in members.files:
            damages.append(Corrupt(f"{name} is not named by {where}"))
        elif total > 1:
            damages.append(Torn(f"{where} is missing: it is written after the {total} shards", unfinished=True))
    return damages
