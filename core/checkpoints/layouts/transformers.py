"""``checkpoint-N`` of the Hugging Face Trainer.

Written in this order (``Trainer._save_checkpoint``): weights, ``training_args.bin``, optimizer, scheduler, RNG state,
and last ``trainer_state.json``. With ``save_only_model`` there is neither optimizer nor scheduler nor RNG state.
"""

import re

from ...model.checkpoints.checkpoint_names import NameCounts
from ..formats.damage import Damage
from .deepspeed import check_latest
from .layout_reading import Findings, LayoutReading, missing, no_weights, optimizer_in, read_counts, weights_in
from .members import Members

STATE = "trainer_state.json"
_TRACES = re.compile(r"^(training_args\.bin|rng_state.*\.pth)$")
"""What only this trainer writes. Any trainer may call its files ``optimizer.pt`` and ``scheduler.pt``."""
_RESUMABLE = re.compile(r"^(rng_state.*\.pth|optimizer\.(pt|bin)|scheduler\.pt|scaler\.pt)$")


def read_transformers(members: Members, findings: Findings) -> LayoutReading | None:
    """Recognised by ``trainer_state.json`` or anything else that only this trainer writes."""
    made_so = any(_TRACES.match(name) for name in members.top())
    if STATE not in members.files and not made_so:
        return None
    damages: list[Damage] = []
    notes: list[str] = []
    counts = NameCounts()
    if not any(weights_in(members)):
        why = "no file with weights is there"
        damages.append(no_weights(members, "model.safetensors", why, beside=STATE, made_so=made_so or bool(findings)))
    resumable = any(_RESUMABLE.match(name) for name in members.top())
    deepspeed = any(folder.startswith("global_step") for folder in members.folders)
    if deepspeed:
        damages.extend(check_latest(members))
    elif not resumable:
        notes.append("weights only, saved without optimizer state")
    elif not optimizer_in(members):
        damages.append(missing(members, "optimizer.pt", "scheduler or RNG state was saved with it"))
    elif not members.has("scheduler.pt", "scheduler.bin"):
        damages.append(missing(members, "scheduler.pt", "without it the trainer ignores the optimizer state too"))
    if STATE in members.files:
        counts = read_counts(members, STATE, damages)
    else:
        why = "it is written last, so the checkpoint was not finished"
        damages.append(missing(members, STATE, why, unfinished=True))
    return LayoutReading(layout="transformers", damages=tuple(damages), notes=tuple(notes), counts=counts)
