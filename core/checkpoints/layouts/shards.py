"""Weights in several files: ``model-00001-of-00003.safetensors`` … and ``model.safetensors.index.json``.

The index maps each tensor to its file and is written last. Source: ``save_pretrained`` of transformers and diffusers.
"""

import json
from pathlib import PurePosixPath

from ...model.checkpoints.checkpoint_names import SHARD
from ...model.checkpoints.checkpoint_suffixes import INDEX_SUFFIX
from ..formats.byte_range import open_bytes
from ..formats.damage import Corrupt, Damage, Torn
from ..formats.pickles.pickle_values import shown
from .layout_reading import Findings
from .members import Members

MAX_INDEX_BYTES = 64 << 20


def shards_of(members: Members, index: str) -> set[str]:
    """The files that an index names. Raises Torn, Corrupt, FileNotFoundError."""
    folder = index.rpartition("/")[0]
    return {f"{folder}/{shard}" if folder else shard for shard in set(read_index(members, index).values())}


def read_index(members: Members, index: str) -> dict[str, str]:
    """Tensor name → file name beside the index. Raises Torn, Corrupt, FileNotFoundError."""
    with open_bytes(members.files[index].path) as source:
        if source.size == 0:
            raise Torn("is empty")
        if source.size > MAX_INDEX_BYTES:
            raise Corrupt(f"has {source.size} bytes, too many for an index")
        raw = source.read(0, source.size)
    try:
        weight_map = json.loads(raw.decode("utf-8"))["weight_map"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise Corrupt(f"is not a valid index: {shown(str(error))}") from error
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
        except FileNotFoundError:
            damages.append(Torn(f"{index} was removed"))
            continue
        except Damage as damage:
            damages.append(damage.within(index))
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
