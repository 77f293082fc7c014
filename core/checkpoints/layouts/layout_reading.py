"""What all directory layouts share: the result of reading one, and which files are weights or optimizer state."""

from collections.abc import Iterator

import msgspec

from ...model.checkpoints.checkpoint import Kind
from ...model.checkpoints.checkpoint_names import NameCounts, is_part, tensor_format
from ...model.checkpoints.checkpoint_suffixes import DCP_SUFFIX
from ..formats.damage import Corrupt, Damage, Torn
from ..formats.state_file import read_state_file
from ..formats.tensor_file import FileFinding
from .members import Members

Findings = dict[str, FileFinding]
"""What was found in each tensor file, by member name."""


class LayoutReading(msgspec.Struct, frozen=True, kw_only=True):
    """A directory read as one layout. ``counts``: from its state file. ``notes``: unusual but harmless."""

    layout: str
    kind: Kind = "directory"
    damages: tuple[Damage, ...] = ()
    notes: tuple[str, ...] = ()
    counts: NameCounts = NameCounts()


def weights_in(members: Members) -> Iterator[str]:
    """Names of the files that hold weights, in any folder."""
    for name in members.files:
        base = name.rpartition("/")[2]
        is_weights = (
            tensor_format(base) in {"safetensors", "torch"} and not is_part(base) and not base.startswith("ema")
        )
        if is_weights or base.endswith((DCP_SUFFIX, "_model_states.pt")):
            yield name


def optimizer_in(members: Members) -> bool:
    """Whether there is optimizer state of any make: a file, FSDP's folder, DeepSpeed's ranks."""
    for name in members.files:
        base = name.rpartition("/")[2]
        if base.startswith("optimizer") and tensor_format(base) is not None:
            return True
        if base.endswith("_optim_states.pt"):
            return True
        if name.startswith("optimizer") and base.endswith(DCP_SUFFIX):
            return True
    return False


def missing(members: Members, name: str, why: str) -> Torn:
    """The finding for a member that should be there."""
    if name in members.strays:
        return Torn(f"{name} is a link out of the directory, or not a regular file")
    return Torn(f"{name} is missing: {why}")


def read_counts(members: Members, name: str, damages: list[Damage]) -> NameCounts:
    """The counts of a state file; what is wrong with it is added to ``damages``."""
    try:
        state = read_state_file(members.files[name].path)
    except Damage as damage:
        damages.append(damage.within(name))
        return NameCounts()
    except FileNotFoundError:
        damages.append(Torn(f"{name} was removed"))
        return NameCounts()
    if state.counts.is_final:
        damages.append(Corrupt(f"{name}: holds neither a step nor an epoch"))
    return state.counts
