"""Length of a training before its first step, from its settings, its data and the pace of earlier runs."""

import math
from collections.abc import Mapping
from typing import Any

import msgspec

from .patterns import LazyPattern


class LengthKeys(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Names of the settings of a framework that set the length of a training (``[length]`` of a preset). "" = none.

    ``*_default``: the value if the setting is missing; 0 = none. ``steps_over_epochs``: if both are given, the steps
    count. ``accumulation`` "" = the framework prints a step for each batch. ``data``: settings that name a folder
    of samples; ``repeats_in_names``: its subfolders are called ``N_name`` and count N times (kohya).
    ``guide``: the pace that a guide measured, for runs whose own pace nobody knows yet.
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
    guide: "GuidePace | None" = None


class GuidePace(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a guide measured: ``step_s``, the seconds of one step with this ``batch``: one value, or least and most.

    ``model``: only for runs that train it ("sdxl"); "" = for all. ``by``: on what it was measured, for the user.
    """

    step_s: tuple[float, ...]
    batch: int = 1
    model: str = ""
    by: str


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds of one printed step; ``most_s``: of a range. ``guess``: where it is from, if not from this job."""

    s: float
    most_s: float | None = None
    guess: str = ""


class ExpectedLength(msgspec.Struct, frozen=True, kw_only=True):
    """An estimate: ``steps`` as the trainer will print them; ``seconds`` None: no pace is known.

    ``by``: what it was computed from, for the user. ``guess``: the pace is not of this job but from there, "" = it is
    of this job. ``most_seconds``: the upper end, if the pace is a range.
    """

    steps: int
    by: str
    seconds: float | None = None
    pace_s: float | None = None
    most_seconds: float | None = None
    guess: str = ""


def guide_pace(
    keys: LengthKeys, settings: Mapping[str, Any], *, models: frozenset[str], speed: str = ""
) -> Pace | None:
    """The pace by the framework's own guide; None if it measured no such run: another training says nothing of it.

    ``models``: the kinds of model that the run trains. ``speed``: of its profile against the guide's run ("+15 %").
    """
    guide = keys.guide
    if guide is None or (guide.model and guide.model not in models):
        return None
    share = _SPEED.match(speed.replace("−", "-"))
    factor = 1.0 if share is None else max(0.1, 1.0 + float(share["pct"]) / 100.0)
    batch = _number(settings, keys.batch) or keys.batch_default
    paces = [step_s * batch / guide.batch / factor for step_s in guide.step_s]
    return Pace(s=paces[0], most_s=paces[-1] if len(paces) > 1 else None, guess=guide.by)


_SPEED = LazyPattern(r"(?P<pct>[-+]\d+) ?%")


def expected_length(
    keys: LengthKeys,
    settings: Mapping[str, Any],
    *,
    samples: int | None,
    pace: Pace | None,
) -> ExpectedLength | None:
    """The estimate, or None if settings and data are not enough.

    ``settings``: the trainer's own, by bare name. ``samples``: of one epoch, repeats counted. ``pace``: None = nothing
    is known of it.
    """
    epochs = _number(settings, keys.epochs)
    steps = _number(settings, keys.steps)
    if steps is not None and steps <= 0:  # transformers: -1 = by epochs
        steps = None
    if steps is not None and (keys.steps_over_epochs or epochs is None):
        return _with_pace(round(steps), f"{keys.steps} = {steps:g}", pace)
    if epochs is None and keys.steps_default:
        return _with_pace(keys.steps_default, f"{keys.steps} is not set", pace)
    epochs = epochs if epochs is not None else keys.epochs_default or None
    if epochs is None or not samples:
        return None
    batch = _number(settings, keys.batch) or keys.batch_default
    together = _number(settings, keys.accumulation) or 1
    processes = _number(settings, "num_processes") or _number(settings, "nproc_per_node") or 1
    per_epoch = math.ceil(math.ceil(samples / batch / processes) / together)
    text = f"{_named(epochs, 'epoch')} x {_named(per_epoch, 'step')} ({_named(samples, 'sample')}, batch {batch:g}"
    text += f", accumulation {together:g})" if together != 1 else ")"
    return _with_pace(math.ceil(epochs * per_epoch), text, pace)


def _named(number: float, word: str) -> str:
    shown = f"{number:,}" if isinstance(number, int) else f"{number:g}"
    return f"{shown} {word}" if number == 1 else f"{shown} {word}s"


def _with_pace(steps: int, by: str, pace: Pace | None) -> ExpectedLength:
    expected = ExpectedLength(steps=steps, by=by)
    if pace is None:
        return expected
    most = None if pace.most_s is None else steps * pace.most_s
    return msgspec.structs.replace(expected, seconds=steps * pace.s, pace_s=pace.s, most_seconds=most, guess=pace.guess)


def _number(settings: Mapping[str, Any], key: str) -> float | None:
    try:
        value = float(settings[key])
    except (KeyError, TypeError, ValueError):
        return None
    return value if math.isfinite(value) else None


# Length of a training as its settings say it, for a log that does not show it.

EPOCH_NAMES = (
    "max_train_epochs", "num_train_epochs", "num_epochs", "max_epochs", "n_epochs", "train_epochs", "total_epochs",
    "nb_epochs", "epochs",
)  # fmt: skip
"""Names of the number of epochs, the least doubtful first. ``epoch`` alone is as often the first one."""
STEP_NAMES = (
    "max_train_steps", "max_steps", "num_train_steps", "total_steps", "train_steps", "training_steps", "max_iters",
    "max_iter", "max_iterations", "num_iterations", "total_iters", "train_iters", "iterations", "iters", "steps",
)  # fmt: skip
"""The same for steps. ``num_steps`` alone is as often that of a sampler."""

BATCH_NAMES = ("per_device_train_batch_size", "train_batch_size", "batch_size", "batch")


DOUBTFUL_NAMES = frozenset({"steps", "iterations", "iters", "epochs"})
"""Names that other parts of a program have, too: the steps of a sampler, of an evaluation."""
UNIT_NAMES = (
    ("gradient_accumulation_steps", "accumulate_grad_batches", "grad_accumulation_steps", "grad_accum_steps",
     "accumulation_steps", "accum_steps", "gradient_accumulation", "grad_accum", "accum_iter", "update_freq"),
    ("nproc_per_node", "num_processes", "world_size"),
    BATCH_NAMES,
)  # fmt: skip
"""Numbers by which a told step and a printed one may differ: accumulated batches, processes, samples."""
SOONER_NAMES = (
    "early_stopping_patience", "early_stop_patience", "patience", "early_stopping", "early_stop", "max_time",
    "time_limit", "max_hours", "max_minutes", "max_seconds", "max_duration", "time_budget",
)  # fmt: skip
"""Settings that end a training before its last step."""


class ToldLength(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``epochs``, ``steps``: None = not set. ``*_by``: where it is set, for people (``--epochs 50``).

    ``*_sure``: that it is the length of the training, not of another thing of that name. ``units``: numbers by which a
    told step and a printed one may differ (batches of an accumulated step, processes, samples of a batch).
    ``sooner_by``: a setting by which the training may end before (``patience 10``); ``resumes_by``: an option of the
    command by which it goes on from an earlier training.
    ``guess``: steps as the trainer will print them, estimated from settings and data; ``guess_by``: from what.
    """

    epochs: int | None = None
    epochs_by: str = ""
    steps: int | None = None
    steps_by: str = ""
    epochs_sure: bool = True
    steps_sure: bool = True
    units: tuple[int, ...] = ()
    sooner_by: str = ""
    resumes_by: str = ""
    guess: int | None = None
    guess_by: str = ""
