"""torch.distributed.checkpoint: ``__RANK_N.distcp`` files and ``.metadata``, which is renamed into place last.

``.metadata`` is a pickle that torch loads without any restriction; here it is read without executing it. Each item
that it lists is a range of a ``.distcp`` file and itself a file of ``torch.save`` or of safetensors.
Source: ``torch/distributed/checkpoint/filesystem.py`` and ``metadata.py`` (torch 2.13).
"""

from typing import TYPE_CHECKING

import msgspec

from ...model.checkpoint_files import NameCounts
from ...model.checkpoint_suffixes import DCP_SUFFIX
from ..formats.byte_range import Corrupt, Damage, Opaque, Torn, open_bytes, worst
from ..formats.tensor_file import epoch_keys, examine_range, step_keys
from ..formats.tensors import Instance, Mapping, PickleValue, shown, tensors_in
from .layout_reading import Finding, Findings
from .sets import Members

if TYPE_CHECKING:
    from ..formats.nonfinite import Scanner


METADATA = ".metadata"
_METADATA_CLASS = "torch.distributed.checkpoint.metadata.Metadata"
_INDEX_CLASS = "torch.distributed.checkpoint.metadata.MetadataIndex"
_INFO_CLASS = "torch.distributed.checkpoint.filesystem._StorageInfo"
_MAX_COUNT_BYTES = 1 << 16


class _Item(msgspec.Struct, frozen=True):
    name: str
    file: str
    offset: int
    length: int
    transformed: bool


def read_dcp(members: Members, _: Findings) -> Finding | None:
    """Recognised by ``.metadata`` or ``.distcp`` files at the top."""
    if not is_dcp(members):
        return None
    damages, counts = check_dcp(members, None)
    return Finding(layout="dcp", kind="dcp", damages=tuple(damages), counts=counts)


def is_dcp(members: Members) -> bool:
    return METADATA in members.files or any(name.endswith(DCP_SUFFIX) for name in members.top())


def check_dcp(members: Members, scanner: "Scanner | None") -> tuple[list[Damage], NameCounts]:
    """Every listed item lies inside its file; with a scanner every item is also read through."""
    if METADATA not in members.files:
        why = "it is written last, so the checkpoint was not finished"
        return [Torn(f"{METADATA} is missing: {why}", unfinished=True)], NameCounts()
    try:
        items = _listed(members)
        damages = [damage for damage in (_misplaced(members, items), _overlapping(items)) if damage is not None]
        counts = _stored_counts(members, items)
        if scanner is not None and not damages:
            damages.extend(_check_items(members, items, scanner))
    except Damage as damage:
        return [damage], NameCounts()
    except FileNotFoundError as error:
        return [Torn(f"{error.filename} was removed")], NameCounts()
    return damages, counts


def _listed(members: Members) -> list[_Item]:
    from ..formats.pickle_reader import MAX_PICKLE_BYTES, read_pickle
    from ..formats.torch_objects import TorchInterpreter

    interpreter = TorchInterpreter()
    with open_bytes(members.files[METADATA].path) as source:
        if source.size > MAX_PICKLE_BYTES:
            raise Opaque(f"{METADATA} of {source.size} bytes is too large to be listed")
        try:
            tree, _ = read_pickle(source.read(0, source.size), interpreter)
        except Damage as damage:
            raise damage.within(METADATA) from damage
    if interpreter.hostile:
        raise Opaque(f"{METADATA} imports {next(iter(interpreter.hostile))}, which no framework stores")
    if interpreter.refused:
        raise Opaque(f"{METADATA} calls {next(iter(interpreter.refused))}, which no known framework stores")
    described = _field(tree, _METADATA_CLASS, "state_dict_metadata")
    storage = _field(tree, _METADATA_CLASS, "storage_data")
    if not isinstance(storage, Mapping) or not isinstance(described, Mapping):
        raise Corrupt(f"{METADATA} does not list what is stored")
    if any(True for _ in tensors_in(tree)):
        raise Corrupt(f"{METADATA} holds tensors")
    items = [_item(index, info) for index, info in storage.pairs]
    names = set(described.texts)
    unstored = names ^ {item.name for item in items}
    if unstored or len(names) != len(described.pairs):
        raise Corrupt(f"{METADATA} contradicts itself about {shown(min(unstored, default='its names'))}")
    return items


def _item(index: PickleValue, info: PickleValue) -> _Item:
    name, file = _field(index, _INDEX_CLASS, "fqn"), _field(info, _INFO_CLASS, "relative_path")
    offset, length = _field(info, _INFO_CLASS, "offset"), _field(info, _INFO_CLASS, "length")
    if not (isinstance(name, str) and isinstance(file, str) and isinstance(offset, int) and isinstance(length, int)):
        raise Corrupt(f"{METADATA} has an entry that is damaged")
    return _Item(name, file, offset, length, bool(_field(info, _INFO_CLASS, "transform_descriptors")))


def _field(value: PickleValue, of: str, name: str) -> PickleValue:
    """An attribute of a described dataclass of that class."""
    if not isinstance(value, Instance) or value.of != of:
        return None
    for state in value.state:
        if isinstance(state, Mapping) and name in state.texts:
            return state.get(name)
    return None


def _misplaced(members: Members, items: list[_Item]) -> Damage | None:
    for item in items:
        member = members.files.get(item.file)
        if member is None:
            outside = item.file.startswith("/") or ".." in item.file.split("/")
            if outside:
                return Corrupt(f"{METADATA} places {shown(item.name)} outside of the checkpoint: {shown(item.file)}")
            return Torn(f"{shown(item.file)} is missing: it holds {shown(item.name)}")
        if item.offset < 0 or item.length <= 0:
            return Corrupt(f"{METADATA} places {shown(item.name)} at byte {item.offset} with {item.length} bytes")
        if item.offset + item.length > member.size_bytes:
            return Torn(
                f"{item.file} is cut off: {member.size_bytes} bytes, {shown(item.name)} ends at byte "
                f"{item.offset + item.length}"
            )
    return None


def _overlapping(items: list[_Item]) -> Damage | None:
    """Overlaps mean that an offset is damaged; unlisted bytes may be left from an earlier save."""
    end: dict[str, int] = {}
    for item in sorted(items, key=lambda item: (item.file, item.offset)):
        if item.offset < end.get(item.file, 0):
            return Corrupt(
                f"{METADATA} places {shown(item.name)} over other items in {item.file} at byte {item.offset}"
            )
        end[item.file] = item.offset + item.length
    return None


def _stored_counts(members: Members, items: list[_Item]) -> NameCounts:
    """Step and epoch, if the trainer stores them in the state as plain numbers."""
    found: dict[str, int] = {}
    for item in items:
        key = item.name.rpartition(".")[2]
        member = members.files.get(item.file)
        counts_steps = key in step_keys([key])
        known = counts_steps or key in epoch_keys([key])
        if not known or member is None or item.length > _MAX_COUNT_BYTES or item.name.count(".") > 1:
            continue
        try:
            with open_bytes(member.path) as source:
                finding = examine_range(source.part(item.offset, item.length), "torch")
        except Damage:
            continue
        tree = finding.contents.tree if finding.contents is not None else None
        if isinstance(tree, int) and not isinstance(tree, bool) and tree >= 0:
            found.setdefault("step" if counts_steps else "epoch", tree)
    return NameCounts(found.get("step"), found.get("epoch"))


def _check_items(members: Members, items: list[_Item], scanner: "Scanner") -> list[Damage]:
    damages: list[Damage] = []
    by_file: dict[str, list[_Item]] = {}
    for item in items:
        by_file.setdefault(item.file, []).append(item)
    for file, listed in by_file.items():
        with open_bytes(members.files[file].path, once=True) as source:
            for item in sorted(listed, key=lambda item: item.offset):
                if item.transformed:
                    damages.append(Opaque(f"{file}: {shown(item.name)} is compressed or encrypted"))
                    continue
                part = source.part(item.offset, item.length)
                is_torch = part.read(0, min(4, part.size)) == b"PK\x03\x04"
                finding = examine_range(part, "torch" if is_torch else "safetensors", scanner=scanner)
                if finding.damage is not None:
                    damages.append(finding.damage.within(f"{file}, {shown(item.name)} from byte {item.offset}"))
    first = worst(damages)
    return damages if first is None else [first]
