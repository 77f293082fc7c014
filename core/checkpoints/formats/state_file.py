"""Small JSON files that hold a training's progress (``training_state.json``, ``trainer_state.json`` …)."""

import json
from pathlib import Path
from typing import Any

import msgspec

from ...model.checkpoints.checkpoint_names import NameCounts
from .byte_range import open_bytes
from .count_keys import epoch_keys, step_keys
from .damage import Corrupt, Torn
from .pickles.pickle_values import shown

MAX_STATE_BYTES = 64 << 20
"""transformers' log history grows with the run; a few MB at most."""
STATE_FILES = ("training_state.json", "trainer_state.json", "train_state.json")


class ProgressState(msgspec.Struct, frozen=True, kw_only=True):
    """A state file: its counts, as stored, and the whole of it."""

    counts: NameCounts
    values: dict[str, Any]


def read_state_file(path: Path) -> ProgressState:
    """Read one. Raises Torn (empty, cut), Corrupt (no JSON object, no counts that are numbers), FileNotFoundError."""
    with open_bytes(path) as source:
        if source.size == 0:
            raise Torn("is empty")
        if source.size > MAX_STATE_BYTES:
            raise Corrupt(f"has {source.size} bytes, too many for a state file")
        raw = source.read(0, source.size)
    try:
        values = json.loads(raw.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        # an error at the very end of the text means that the file was cut
        cut = isinstance(error, json.JSONDecodeError) and error.pos >= len(error.doc.rstrip())
        cut = cut or (isinstance(error, json.JSONDecodeError) and "Unterminated" in error.msg)
        kind = Torn if cut else Corrupt
        raise kind(f"is not valid JSON: {shown(str(error))}") from error
    if not isinstance(values, dict):
        raise Corrupt("does not hold a JSON object")
    return ProgressState(counts=counts_in(values), values=values)


def counts_in(values: dict[str, Any]) -> NameCounts:
    """Step and epoch among the keys that trainers use; a fractional epoch counts as begun."""
    return NameCounts(_whole(values, step_keys(values)), _whole(values, epoch_keys(values)))


def _whole(values: dict[str, Any], keys: tuple[str, ...]) -> int | None:
    for key in keys:
        value = values.get(key)
        if isinstance(value, str) and value.strip().isdecimal() and len(value) < 16:
            return int(value)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1 << 53:
            return int(value)
    return None
