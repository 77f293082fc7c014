"""``model.pt``, ``optimizer.pt``, ``training_state.json``, and ``scheduler.pt`` and ``ema_model.pt`` if in use.

Other trainers keep files of these names in folders of their own making. What the layout demands is demanded only if the
preset names the layout, or if the folder holds what only its trainer writes together.
"""

import re

from ...model.checkpoints.checkpoint_names import NameCounts
from ..formats.damage import Damage, NoCounts
from .layout_reading import Findings, LayoutReading, missing, no_weights, optimizer_in, read_counts, weights_in
from .members import Members

LAYOUT = "training_state"
STATE = "training_state.json"
MODEL = "model.pt"
OPTIMIZER = "optimizer.pt"
SCHEDULER = "scheduler.pt"
EMA = "ema_model.pt"
_MODEL = re.compile(r"^(pytorch_)?model")


def read_training_state(members: Members, findings: Findings) -> LayoutReading | None:
    """Recognised by its state file or model.

    Without the state file the trainer counts on from the name; with it the optimizer must be there, too.
    """
    if not members.has(STATE, MODEL):
        return None
    made_so = members.layout == LAYOUT or _is_own_make(members)
    damages: list[Damage] = []
    notes: list[str] = []
    counts = NameCounts()
    if STATE in members.files:
        found: list[Damage] = []
        counts = read_counts(members, STATE, found)
        damages += [damage for damage in found if made_so or not isinstance(damage, NoCounts)]
    elif made_so or _named_like_it(members):
        notes.append(f"{STATE} is missing: step and epoch are taken from the name")
    contents = None if made_so else findings  # its trainer goes by the names
    weights = [name.rpartition("/")[2] for name in weights_in(members, contents)]
    # Others keep such a state file beside weights of their own names, and an optimizer that is not this layout's.
    foreign = STATE in members.files and not (made_so and members.has(OPTIMIZER))
    unfinished = made_so and STATE not in members.files
    if not weights or not (foreign or any(_MODEL.match(name) for name in weights)):
        tensors, why = made_so or bool(findings), "it holds the weights"
        damages.append(no_weights(members, MODEL, why, beside=STATE, made_so=tensors, unfinished=unfinished))
    if not optimizer_in(members, contents):
        if made_so:
            why = "training cannot go on without it"
            damages.append(missing(members, OPTIMIZER, why, unfinished=unfinished))
        else:
            notes.append("no optimizer state of a known name is in it")
    return LayoutReading(layout=LAYOUT, damages=tuple(damages), notes=tuple(notes), counts=counts)


def _is_own_make(members: Members) -> bool:
    """Whether it holds together what only the trainer of this layout writes."""
    return members.has(STATE) and (members.has(EMA) or (members.has(MODEL) and members.has(SCHEDULER)))


def _named_like_it(members: Members) -> bool:
    return members.has(SCHEDULER, EMA, OPTIMIZER)
