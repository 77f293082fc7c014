"""State directories of ``accelerator.save_state``, and kohya's ``NAME-000004-state``, which are the same.

Written in this order (``accelerate/checkpointing.py``): weights, ``optimizer.bin``, ``scheduler.bin``, ``sampler.bin``,
scaler, and last ``random_states_0.pkl``. kohya's hook adds ``train_state.json`` before.
"""

import re

from ...model.checkpoints.checkpoint_names import NameCounts
from ..formats.damage import Damage
from .layout_reading import Findings, LayoutReading, missing, no_weights, optimizer_in, read_counts, weights_in
from .members import Members

STATE = "train_state.json"
_LAST = re.compile(r"^random_states_\d+\.pkl$")
_TRACES = re.compile(r"^(random_states_\d+\.pkl|optimizer(_\d+)?\.bin|sampler(_\d+)?\.bin|train_state\.json)$")
_STATE_NAME = re.compile(r"-state$")


def read_accelerate(members: Members, findings: Findings) -> LayoutReading | None:
    """Recognised by any file that only accelerate or kohya writes, or, with weights, by the name ``*-state``."""
    made_so = any(_TRACES.match(name) for name in members.top())
    if not made_so and not (_STATE_NAME.search(members.root.name) and any(weights_in(members))):
        return None
    damages: list[Damage] = []
    counts = NameCounts()
    if not any(weights_in(members)):
        damages.append(
            no_weights(members, "model.safetensors", "no file with weights is there", made_so=made_so or bool(findings))
        )
    if not optimizer_in(members):
        damages.append(missing(members, "optimizer.bin", "training cannot go on without it"))
    if not any(_LAST.match(name) for name in members.top()):
        why = "it is written last, so the checkpoint was not finished"
        damages.append(missing(members, "random_states_0.pkl", why, unfinished=made_so))
    if STATE in members.files:
        counts = read_counts(members, STATE, damages)
    return LayoutReading(layout="accelerate", damages=tuple(damages), counts=counts)
