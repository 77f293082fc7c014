"""``model.pt``, ``optimizer.pt``, ``training_state.json``, and ``scheduler.pt`` and ``ema_model.pt`` if in use."""

import re

from ...model.checkpoints.checkpoint_names import NameCounts, is_checkpoint_directory_name
from ..formats.damage import Damage
from .layout_reading import Findings, LayoutReading, missing, optimizer_in, read_counts, weights_in
from .members import Members

STATE = "training_state.json"
MODEL = "model.pt"
OPTIMIZER = "optimizer.pt"
_MODEL = re.compile(r"^(pytorch_)?model")


def read_training_state(members: Members, _: Findings) -> LayoutReading | None:
    """Recognised by its state file or model.

    Without the state file the trainer counts on from the name; with it the optimizer must be there, too.
    """
    if not members.has(STATE, MODEL):
        return None
    damages: list[Damage] = []
    notes: list[str] = []
    counts = NameCounts()
    if STATE in members.files:
        counts = read_counts(members, STATE, damages)
    else:
        notes.append(f"{STATE} is missing: step and epoch are taken from the name")
    weights = [name.rpartition("/")[2] for name in weights_in(members)]
    # Others keep such a state file beside weights of their own names, and an optimizer that is not this layout's.
    foreign = STATE in members.files and not members.has(OPTIMIZER)
    if not any(foreign or _MODEL.match(name) for name in weights):
        damages.append(missing(members, MODEL, "it holds the weights"))
    if not optimizer_in(members):
        if STATE in members.files or is_checkpoint_directory_name(members.root.name):
            damages.append(missing(members, OPTIMIZER, "training cannot go on without it"))
        else:
            notes.append("weights only, no optimizer state")
    return LayoutReading(layout="training_state", damages=tuple(damages), notes=tuple(notes), counts=counts)
