"""What all directory layouts share: the result of reading one, and which files are weights or optimizer state."""

import re
from collections.abc import Iterator

import msgspec

from ...model.checkpoint import Kind
from ...model.checkpoint_files import TEXT_SUFFIXES, NameCounts, is_part, tensor_format
from ...model.checkpoint_suffixes import DCP_SUFFIX
from ..formats.byte_range import Damage, NoCounts, Opaque, Torn
from ..formats.tensor_file import FileFinding, counts_in, read_json
from ..formats.tensors import TORCHSCRIPT, FileContents, Mapping, PickleValue
from ..unknown_state import UNKNOWN, holds_state, holds_text
from .sets import Members

_MOMENTS = re.compile(r"^optim|(^|\.)(exp_avg|momentum_buffer)")
"""In names of tensors: what optimizers keep."""

WRITTEN_LAST = "it is written last, so the checkpoint was not finished"
Findings = dict[str, FileFinding]
"""What was found in each tensor file, by member name."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """What was found of one checkpoint. ``damages`` empty: complete; ``notes``: unusual but harmless.

    ``files`` by member name. Of a layout alone, ``counts`` are those of its state file.
    """

    layout: str
    kind: Kind = "directory"
    counts: NameCounts = NameCounts()
    damages: tuple[Damage, ...] = ()
    notes: tuple[str, ...] = ()
    files: Findings = {}

    @property
    def held(self) -> dict[str, FileContents]:
        """What the files hold that could be listed, by member name."""
        return {name: found.contents for name, found in self.files.items() if found.contents is not None}

    @property
    def opaque(self) -> tuple[str, ...]:
        """Names of members, or of a single file its objects, beyond tensors."""
        found = {name: contents.opaque for name, contents in self.held.items()}
        return next(iter(found.values())) if self.layout == "file" and found else tuple(n for n in found if found[n])

    @property
    def is_bare(self) -> bool:
        """A single undamaged file from which nothing can be resumed.

        Plain values (a vocabulary, a list of names), or something else than the state of a training.
        """
        held = [found.contents for found in self.files.values()]
        plain = all(c is not None and not (c.tensors or c.opaque or c.metadata) for c in held)
        return self.layout == "file" and not self.damages and (plain or self.is_other)

    @property
    def is_other(self) -> bool:
        """Whether it is a model compiled for inference, or an optimizer alone, which belongs to weights beside it."""
        return any(TORCHSCRIPT in c.opaque or is_optimizer_alone(c) for c in self.held.values())

    @property
    def objects(self) -> tuple[str, ...]:
        """What ``torch.load`` refuses with ``weights_only``, if each of its files of torch holds something of it."""
        held = [contents for contents in self.held.values() if contents.format.startswith("torch_")]
        return tuple(dict.fromkeys(name for c in held for name in c.objects)) if all(c.objects for c in held) else ()


def weights_in(members: Members, findings: Findings | None = None) -> Iterator[str]:
    """Names of the files that hold weights, in any folder. ``findings``: what they hold, for those of other names."""
    for name in members.files:
        base = name.rpartition("/")[2]
        found = None if findings is None else findings.get(name)
        tensors = found is not None and found.contents is not None and bool(found.contents.tensors)
        named = tensor_format(base) in {"safetensors", "torch"}
        is_weights = (named or tensors) and not is_part(base) and not base.startswith("ema")
        if is_weights or base.endswith((DCP_SUFFIX, "_model_states.pt")):
            yield name


def optimizer_in(members: Members, findings: Findings | None = None) -> bool:
    """Whether there is optimizer state of any make: a file, FSDP's folder, DeepSpeed's ranks.

    ``findings``: what the files hold, for those that keep model and optimizer together.
    """
    held = () if findings is None else findings.values()
    if any(file_has_optimizer(found.contents) for found in held if found.contents is not None):
        return True
    for name in members.files:
        base = name.rpartition("/")[2]
        named = base.startswith("optim") and "." + base.rpartition(".")[2] not in TEXT_SUFFIXES
        if named or base.endswith("_optim_states.pt") or (name.startswith("optimizer") and base.endswith(DCP_SUFFIX)):
            return True
    return False


def file_has_optimizer(contents: FileContents) -> bool:
    """Whether one file holds optimizer state beside its weights: by its name, its tensors, or its own two keys."""
    parts = contents.tree.texts if isinstance(contents.tree, Mapping) else {}
    if any(key.startswith("optim") for key in parts) or any(map(_is_optimizer, parts.values())):
        return True
    return any(_MOMENTS.search(tensor.name) for tensor in contents.tensors)


def _is_optimizer(value: PickleValue) -> bool:
    """Whether it is what ``Optimizer.state_dict()`` returns; of plain SGD that holds no tensor."""
    return isinstance(value, Mapping) and {"state", "param_groups"} <= value.texts.keys()


def is_optimizer_alone(contents: FileContents) -> bool:
    """PyTorch numbers the parameters in the state of an optimizer: what has names there may be weights."""
    state = contents.tree.texts.get("state") if isinstance(contents.tree, Mapping) else None
    numbered = _is_optimizer(contents.tree) and isinstance(state, Mapping) and not state.texts
    return numbered and all(tensor.name.startswith("state.") for tensor in contents.tensors)


def no_weights(
    members: Members, name: str, why: str, *, beside: str = "", made_so: bool = False, unfinished: bool = False
) -> Damage:
    """The finding for a folder without weights of a known make: they may be there in an unknown one, text among them.

    ``beside``: the layout's state file, which holds counts. ``made_so``: its files are of a make whose weights are
    never text, such as files of tensors.
    """
    found = holds_state(members.root)
    if found is None and not made_so and not unfinished and not members.strays:
        found = holds_text(members.root, beside)
    return missing(members, name, why, unfinished=unfinished) if found is None else Opaque(f"{UNKNOWN} ({found})")


def missing(members: Members, name: str, why: str, *, unfinished: bool = False) -> Torn:
    """The finding for a member that should be there, by the rules of a layout that its trainer may not follow.

    ``unfinished``: it is known to be written last, or what is written last is missing, too.
    """
    if name in members.strays:
        return Torn(f"{name} is a link out of the directory, or not a regular file", understood=False)
    return Torn(f"{name} is missing: {why}", understood=False, unfinished=unfinished)


def read_counts(members: Members, name: str, damages: list[Damage]) -> NameCounts:
    """The counts of a state file, none if there is none; what is wrong with it is added to ``damages``."""
    if name not in members.files:
        return NameCounts()
    try:
        counts = counts_in(read_json(members.files[name].path, "a state file"))
    except (Damage, FileNotFoundError) as why:
        damages.append(why.within(name) if isinstance(why, Damage) else Torn(f"{name} was removed"))
        return NameCounts()
    if counts.is_final:
        damages.append(NoCounts(f"{name}: holds neither a step nor an epoch"))
    return counts
