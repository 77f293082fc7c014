"""One checkpoint that is a directory: its files, its layout, its verdict."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ...model.checkpoint_files import (
    KNOWN_WEIGHTS,
    OPAQUE_BY_DESIGN,
    NameCounts,
    is_checkpoint_directory_name,
    is_counted_directory_name,
    is_other_file,
    read_name,
    tensor_format,
)
from ...model.checkpoint_suffixes import DCP_SUFFIX, TensorFormat
from ..formats.byte_range import Damage, Torn, head_of
from ..formats.foreign_formats import TORCH_LEGACY, is_safetensors, is_torch_zip
from ..formats.tensor_file import STATE_FILES, FileFinding, counts_of, examine_file, looks_like_torch
from ..unknown_state import is_text
from .dcp import check_dcp, is_dcp, read_dcp
from .frameworks import (
    LAYOUT,
    TAG,
    TRAINING_STATE_STATE,
    check_shards,
    read_accelerate,
    read_deepspeed,
    read_deepspeed_save,
    read_training_state,
    read_transformers,
)
from .layout_reading import Finding, Findings, no_weights, optimizer_in, weights_in
from .sets import LATEST, MAX_MEMBERS, RANK_FOLDER, Member, Members, missing_beside_older, missing_ranks

if TYPE_CHECKING:
    from ..formats.nonfinite import Scanner


def read_weights(members: Members, findings: Findings) -> Finding | None:
    """Everything that no other layout claims, if it is a checkpoint by its name or by known weights."""
    if any(weights_in(members, findings)):
        whole = optimizer_in(members, findings)
        return Finding(layout="weights", notes=() if whole else ("weights only, no optimizer state",))
    if is_checkpoint_directory_name(members.root.name) or any(KNOWN_WEIGHTS.match(name) for name in members.top()):
        other = no_weights(members, "", "", made_so=bool(findings))
        # Only an empty one is known to hold no state.
        empty = Torn("no file with weights is in it", understood=not members.size_bytes)
        return Finding(layout="weights", damages=(other if other.verdict == "opaque" else empty,))
    return None


_LAYOUTS: tuple[Callable[[Members, Findings], Finding | None], ...] = (
    read_dcp,
    read_deepspeed,
    read_training_state,
    read_accelerate,
    read_transformers,
    read_deepspeed_save,
    read_weights,
)
"""Asked in this order; the first that recognises the directory decides."""
_LOOSE = frozenset({"training_state", "weights"})
"""Layouts that demand little: an older checkpoint of the same make tells what else belongs to one."""


def examine_members(members: Members, scanner: "Scanner | None") -> Findings:
    """What each tensor file holds. With a scanner every tensor is read through."""
    findings: Findings = {}
    for name, member in members.files.items():
        if (chosen := format_of(member)) is not None:
            needed = not OPAQUE_BY_DESIGN.search(name.rpartition("/")[2])
            try:
                findings[name] = examine_file(member.path, chosen, scanner=scanner, needed=needed)
            except FileNotFoundError:
                findings[name] = FileFinding(contents=None, damage=Torn("was removed just now"))
    return findings


def examine_directory(members: Members, *, scanner: "Scanner | None" = None) -> Finding | None:
    """Read a directory as a checkpoint, or None if it is none."""
    findings = examine_members(members, scanner)
    all_members, members = members, _without_text(members, findings)
    reading = next((found for read in _LAYOUTS if (found := read(members, findings)) is not None), None)
    if reading is None:
        return None
    damages = [*reading.damages]
    # What is opaque has no rules of its own, so only its like tells whether it is whole.
    opaque = bool(reading.damages) and all(damage.verdict == "opaque" for damage in reading.damages)
    if opaque or (reading.layout in _LOOSE and not reading.damages):
        optional = frozenset({TRAINING_STATE_STATE}) if reading.layout == LAYOUT else frozenset[str]()
        damages.extend(missing_beside_older(all_members, optional))
    damages.extend(missing_ranks(members))
    damages.extend(finding.damage.within(name) for name, finding in findings.items() if finding.damage is not None)
    damages.extend(check_shards(members, findings))
    damages.extend(_check_inner_dcp(members, reading, scanner))
    zero = [
        f"{name}: {findings[name].note}" for name in weights_in(members) if name in findings and findings[name].note
    ]
    return msgspec.structs.replace(
        reading,
        damages=tuple(damages),
        notes=(*reading.notes, *zero),
        counts=_counts(members, reading, findings),
        files=findings,
    )


def _without_text(members: Members, findings: Findings) -> Members:
    """The members without those that are text: they are no damage, whatever their suffix, and no weights either.

    Source: SpeechBrain's ``brain.ckpt`` is YAML. What a trainer keeps in it, only the trainer can tell.
    """
    for name, found in list(findings.items()):
        doubted = found.damage is not None and not found.damage.understood
        if doubted and is_text(head_of(members.files[name].path) or b""):
            del findings[name]
            files = {other: member for other, member in members.files.items() if other != name}
            members = msgspec.structs.replace(members, files=files)
    return members


def bytes_to_scan(members: Members) -> int:
    """How many bytes a deep check will read."""
    found = members.files.values()
    return sum(each.size_bytes for each in found if each.name.endswith(DCP_SUFFIX) or format_of(each) is not None)


def format_of(member: Member) -> TensorFormat | None:
    """The format in which a member is to be read, or None for what holds no tensors."""
    base = member.name.rpartition("/")[2]
    promised = tensor_format(base)
    if promised == "maybe_torch":
        return "torch" if looks_like_torch(head_of(member.path, 32) or b"") else None
    if promised is not None or base.endswith(DCP_SUFFIX) or is_other_file(base):
        return promised
    # the suffix says nothing: ``last.pth.tar`` is a file of torch
    head = head_of(member.path) or b""
    if is_torch_zip(head) or head.startswith(TORCH_LEGACY):
        return "torch"
    return "safetensors" if is_safetensors(head) else None


def _check_inner_dcp(members: Members, reading: Finding, scanner: "Scanner | None") -> list[Damage]:
    """FSDP's folders in another layout (``pytorch_model_fsdp_0/``, ``optimizer_0/``), and the deep part of DCP."""
    if reading.kind == "dcp":
        return [] if scanner is None or reading.damages else check_dcp(members, scanner)[0]
    inner = ((folder, members.under(folder)) for folder in members.folders)
    return [found.within(folder) for folder, each in inner if is_dcp(each) for found in check_dcp(each, scanner)[0]]


def _counts(members: Members, reading: Finding, findings: Findings) -> NameCounts:
    """Step and epoch: from the state file, else from the files with weights, else from the directory's name."""
    counts = reading.counts
    for name in sorted(weights_in(members)):
        if name in findings and (contents := findings[name].contents) is not None:
            counts = counts.or_of(counts_of(contents, ""))
    return counts.or_of(read_name(members.root.name))


# Which directories are checkpoints, by names alone: an output directory may hold a hundred thousand images.

_TYPICAL = re.compile(
    rf"^\.metadata$|{re.escape(DCP_SUFFIX)}$"
    r"|_model_states\.pt$|^optimizer\.(pt|bin)$|^random_states_\d+\.pkl$|^rng_state.*\.pth$"
)
"""Files that make the directory they lie in a checkpoint."""


def is_checkpoint_directory(folder: Path) -> bool:
    """Whether a directory is one checkpoint, by its name or by what lies directly in it; nothing is opened.

    One that holds checkpoints of its own is an output directory, unless they are the tags of a DeepSpeed save with
    ``latest`` beside them, or the folders of ranks, which are none by themselves.
    """
    if RANK_FOLDER.match(folder.name):
        return False
    if is_checkpoint_directory_name(folder.name) or is_checkpoint_directory_name(folder.name.removeprefix("tmp-")):
        return True
    counted = is_counted_directory_name(folder.name)
    found = tags = False
    try:
        with os.scandir(folder) as entries:
            for number, entry in enumerate(entries):
                if number > MAX_MEMBERS:
                    return False
                if entry.is_dir(follow_symlinks=False):
                    if TAG.match(entry.name):
                        tags = True
                    elif RANK_FOLDER.match(entry.name):
                        found = True
                    elif is_checkpoint_directory_name(entry.name):
                        return False  # an output directory of its own
                    continue
                known = entry.name in STATE_FILES or _TYPICAL.search(entry.name) or KNOWN_WEIGHTS.match(entry.name)
                found = found or bool(known) or (counted and tensor_format(entry.name) is not None)
    except OSError:
        return False
    return (folder / LATEST).is_file() if tags else found
