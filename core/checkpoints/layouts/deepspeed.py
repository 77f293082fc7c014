"""DeepSpeed: ``global_stepN/`` with ``mp_rank_*_model_states.pt`` and a ``*_optim_states.pt`` for each rank of ZeRO.

``latest`` beside the tag folders names the newest finished one and is written after all ranks are done.
Source: ``deepspeed/runtime/engine.py`` (``save_checkpoint``, ``_get_all_zero_checkpoint_names``).
"""

import re
from pathlib import Path

from ...model.checkpoints.checkpoint_names import NameCounts, read_name
from ..formats.byte_range import open_bytes
from ..formats.damage import Damage, Torn
from ..formats.pickles.pickle_tensors import whole_number
from ..formats.pickles.pickle_values import Mapping, shown
from .layout_reading import Findings, LayoutReading
from .members import Members

LATEST = "latest"
_MODEL = re.compile(r"^(?:zero_pp_rank_(?P<dp>\d+)_)?mp_rank_(?P<mp>\d+)_model_states\.pt$")
_OPTIMIZER = re.compile(r"^(?P<kind>bf16_|fp16_)?zero_pp_rank_(?P<dp>\d+)_mp_rank_(?P<mp>\d+)_optim_states\.pt$")
_MAX_LATEST_BYTES = 4096
TAG = re.compile(r"^global_step\d+$")
"""What its tag folders are called if the trainer gives no name."""


def read_deepspeed(members: Members, findings: Findings) -> LayoutReading | None:
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
        step = whole_number(tree, ("global_steps", "global_step")) if step is None else step
        damages.extend(_missing_ranks(tree, int(match["mp"]), optimizers, kind))
    ranks = sorted(optimizers)
    if ranks:
        expected = {(dp, mp) for dp in range(ranks[-1][0] + 1) for mp in {mp for _, mp in ranks}}
        damages.extend(_missing_rank(rank, kind) for rank in sorted(expected - optimizers)[:1])
    damages.extend(_not_named_latest(members.root))
    return LayoutReading(layout="deepspeed", damages=tuple(damages), counts=NameCounts(step))


def read_deepspeed_save(members: Members, findings: Findings) -> LayoutReading | None:
    """The folder of the tags, which is what loading is given: what ``latest`` names must be there, with all its ranks.

    Recognised by a tag folder with model or optimizer states, or by ``latest`` with the name of a usual tag.
    """
    tags = {
        name.partition("/")[0]
        for name in members.files
        if name.count("/") == 1 and (_MODEL.match(name.partition("/")[2]) or _OPTIMIZER.match(name.partition("/")[2]))
    }
    named = _read_latest(members.root / LATEST) if LATEST in members.files else None
    if not tags and not (named is not None and TAG.match(named)):
        return None
    damages = check_latest(members)
    if damages or named is None:
        return LayoutReading(layout="deepspeed", damages=tuple(damages))
    inner = {name.removeprefix(f"{named}/"): found for name, found in findings.items() if name.startswith(f"{named}/")}
    newest = read_deepspeed(members.under(named), inner)
    if newest is None:
        nothing = Torn(f"{named}, which {LATEST} names, holds no states of DeepSpeed", understood=False)
        return LayoutReading(layout="deepspeed", damages=(nothing,))
    return LayoutReading(
        layout="deepspeed", damages=tuple(damage.within(named) for damage in newest.damages), counts=newest.counts
    )


def check_latest(members: Members) -> list[Damage]:
    """A folder that holds tag folders: ``latest`` must name one that is there. Loading reads it first."""
    if LATEST not in members.files:
        return [Torn("latest is missing: it is written last, so the checkpoint was not finished", unfinished=True)]
    tag = _read_latest(members.root / LATEST)
    if tag is None or tag not in members.folders:
        return [Torn(f"latest names {shown(tag or 'nothing')}, which does not exist", understood=False)]
    return []


def _missing_ranks(tree: Mapping, mp: int, optimizers: set[tuple[int, int]], kind: str) -> list[Damage]:
    """ZeRO keeps the optimizer out of the model states: then each rank must have its own file."""
    ranks = whole_number(tree, ("dp_world_size",))
    if ranks is None or tree.get("optimizer") is not None or not (optimizers or "optimizer" in tree.keys()):  # noqa: SIM118 -- not a dict
        return []
    absent = [rank for dp in range(min(ranks, 100_000)) if (rank := (dp, mp)) not in optimizers]
    return [_missing_rank(absent[0], kind)] if absent else []


def _missing_rank(rank: tuple[int, int], kind: str) -> Torn:
    name = f"{kind}zero_pp_rank_{rank[0]}_mp_rank_{rank[1]:02d}_optim_states.pt"
    return Torn(f"{name} is missing: every rank must have saved", understood=False)


def _not_named_latest(root: Path) -> list[Damage]:
    tag = _read_latest(root.parent / LATEST)
    if tag is None or tag == root.name:
        return []
    named, own = read_name(tag).step, read_name(root.name).step
    if named is not None and own is not None and named < own:
        return [Torn(f"was not finished: {LATEST} beside it names {shown(tag)}", unfinished=True)]
    return []


def _read_latest(path: Path) -> str | None:
    try:
        with open_bytes(path) as source:
            return source.read(0, min(source.size, _MAX_LATEST_BYTES)).decode("utf-8", "replace").strip()
    except (OSError, Damage):
        return None
