"""Whether a checkpoint holds the state of a training or weights alone."""

import re

from ..model.checkpoint import Holds
from .contents import FileContents
from .layout import optimizer_in
from .pickle_values import Mapping
from .state_file import STATE_FILES
from .subject import Finding, Subject

_MOMENTS = re.compile(r"^optim|(^|\.)(exp_avg|momentum_buffer)")
"""In names of tensors: what optimizers keep."""


def has_optimizer(subject: Subject, finding: Finding) -> bool:
    """A member of its own, or inside a file."""
    return optimizer_in(subject.members) or any(
        _file_has_optimizer(found.contents) for found in finding.files.values() if found.contents is not None
    )


def holding(subject: Subject, finding: Finding) -> Holds | None:
    """None where that cannot be seen: DCP's pieces, and files whose objects cannot be listed."""
    if has_optimizer(subject, finding):
        return "state"
    if finding.layout in {"file", "shards"}:
        return "weights" if all(f.contents is not None for f in finding.files.values()) and finding.files else None
    if any(name in subject.members.files for name in STATE_FILES):
        return "state"
    return None if finding.kind == "dcp" else "weights"


def _file_has_optimizer(contents: FileContents) -> bool:
    tree = contents.tree
    if isinstance(tree, Mapping) and any(key.startswith("optim") for key in tree.keys()):  # noqa: SIM118  no dict
        return True
    return any(_MOMENTS.search(tensor.name) for tensor in contents.tensors)
