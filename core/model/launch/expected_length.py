"""Length of a training before its first step, from its settings, its data and the pace of earlier runs."""

import math
from collections.abc import Mapping
from typing import Any

import msgspec


class LengthKeys(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Names of the settings of a framework that set the length of a training (``[length]`` of a preset). "" = none.

    ``*_default``: the value if the setting is missing; 0 = none. ``steps_over_epochs``: if both are given, the steps
    count. ``accumulation`` "" = the framework prints a step for each batch. ``data``: settings that name a folder
    of samples; ``repeats_in_names``: its subfolders are called ``N_name`` and count N times (kohya).
    """

    epochs: str = ""
    epochs_default: float = 0
    steps: str = ""
    steps_default: int = 0
    steps_over_epochs: bool = False
    batch: str = ""
    batch_default: int = 1
    accumulation: str = ""
    data: tuple[str, ...] = ()
    repeats_in_names: bool = False


class ExpectedLength(msgspec.Struct, frozen=True, kw_only=True):
    """An estimate: ``steps`` as the trainer will print them; ``seconds`` None: no earlier run is known.

    ``by``: what it was computed from, for the user.
    """

    steps: int
    by: str
    seconds: float | None = None
    pace_s: float | None = None


def expected_length(
    keys: LengthKeys, settings: Mapping[str, Any], *, samples: int | None, pace_s: float | None
) -> ExpectedLength | None:
    """The estimate, or None if settings and data are not enough.

    ``settings``: the trainer's own, by bare name. ``samples``: of one epoch, repeats counted. ``pace_s``: seconds for
    one printed step, of earlier runs.
    """
    epochs = _number(settings, keys.epochs)
    steps = _number(settings, keys.steps)
    if steps is not None and steps <= 0:  # transformers: -1 = by epochs
        steps = None
    if steps is not None and (keys.steps_over_epochs or epochs is None):
        return _with_pace(round(steps), f"{keys.steps} = {steps:g}", pace_s)
    if epochs is None and keys.steps_default:
        return _with_pace(keys.steps_default, f"{keys.steps} is not set", pace_s)
    epochs = epochs if epochs is not None else keys.epochs_default or None
    if epochs is None or not samples:
        return None
    batch = _number(settings, keys.batch) or keys.batch_default
    together = _number(settings, keys.accumulation) or 1
    processes = _number(settings, "num_processes") or _number(settings, "nproc_per_node") or 1
    per_epoch = math.ceil(math.ceil(samples / batch / processes) / together)
    text = f"{epochs:g} epochs x {per_epoch:,} steps ({samples:,} samples, batch {batch:g}"
    text += f", accumulation {together:g})" if together != 1 else ")"
    return _with_pace(math.ceil(epochs * per_epoch), text, pace_s)


def _with_pace(steps: int, by: str, pace_s: float | None) -> ExpectedLength:
    return ExpectedLength(steps=steps, by=by, seconds=None if pace_s is None else steps * pace_s, pace_s=pace_s)


def _number(settings: Mapping[str, Any], key: str) -> float | None:
    try:
        value = float(settings[key])
    except (KeyError, TypeError, ValueError):
        return None
    return value if math.isfinite(value) else None
