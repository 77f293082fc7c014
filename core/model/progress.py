"""Progress of a training run, from its output; its length before the first step."""

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal, get_args

import msgspec

from .settings import Health as HealthSettings
from .text import LazyPattern, memory, size

Phase = Literal["load", "preprocess", "compile", "train", "eval", "sample", "save", "finish", "unknown"]
"""What the trainer is doing. Only ``train`` moves the step clock."""


class Outlook(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the judge expects of the next step. Times in run seconds, None = not known or not planned.

    ``usual_s``: the usual distance of lines that show a step; ``pause_s``: the longest harmless silence so far.
    ``hang_t``: when a silence is declared a hang if nothing moves; ``patient_t``: until then none is declared.
    """

    usual_s: float | None = None
    pause_s: float = 0.0
    hang_t: float | None = None
    patient_t: float | None = None


class Counters(msgspec.Struct, frozen=True, kw_only=True):
    step: int | None = None
    total_steps: int | None = None
    epoch: float | None = None
    total_epochs: int | None = None
    loss: float | None = None
    lr: float | None = None
    sec_per_step: float | None = None
    run_step: int | None = None
    run_total_steps: int | None = None


class Progress(Counters, frozen=True, kw_only=True):
    """The state after the newest line. Field names are the contract of ``trainwatch progress --json``.

    ``step`` counts as the trainer prints it (within the epoch if its bar is per epoch), ``epoch`` likewise
    (0-based stays 0-based). ``run_step``, ``run_total_steps`` and ``eta_s`` are of the whole run, in the unit of the
    counter; None if they cannot be told. ``loss`` is None if the trainer printed NaN or nothing. Units: seconds.
    """

    phase: Phase = "unknown"
    eta_s: float | None = None
    of_part: bool = False
    """Step and total are of a part of the run, as an epoch, of which it is not known where in the run it lies."""
    total_by: str | None = None
    """By what the total is known if the log does not show it (``--epochs 50``), for people. None: by the log."""

    @property
    def any_step(self) -> int | None:
        """The step of the whole run; as printed in a journal of an older version. None: unknown, or of a part of it."""
        return self.run_step if self.run_step is not None or self.of_part else self.step


# What a state of the run follows from, as a value. The sentence beside it is for people; nothing is decided by it.

HoldKind = Literal[
    "disk_full", "no_inodes", "no_room", "read_only", "no_resources", "not_started", "program_gone", "other_trainer",
    "gpu_lost", "gpu_memory", "not_listed", "not_understood", "unclear_output", "not_copied", "refused_checkpoint",
    "not_read", "checkpoints_fine", "bad_in_front", "signal", "act",
]  # fmt: skip
"""What the next attempt waits for, and the run cannot do by itself. ``no_room``: a disk or a quota that is not watched;
``act``: ``restart.act`` leaves it to a person; ``signal``: nobody knows who ended it; ``checkpoints_fine``: an older
checkpoint ends in the same way; ``bad_in_front``: the trainer chooses its checkpoint, and would take a bad one."""
WhyKind = Literal["", "person", "ordered", "unproven", HoldKind]
"""``person``: stopped with trainwatch. ``ordered``: ended on purpose in another way, or at its end time. ``unproven``:
finished, and nothing showed that it was the end. Empty: the state tells it all, or the journal does not tell."""


class Why(msgspec.Struct, frozen=True, omit_defaults=True):
    """``incident``: it is about this one. ``need_bytes``, ``free_bytes``: of a full disk, when it began.

    ``until_t``: run time at which a held attempt is launched again by itself; None: when what it waits for is there.
    """

    kind: WhyKind = ""
    incident: int | None = None
    need_bytes: float | None = None
    free_bytes: float | None = None
    until_t: float | None = None

    @property
    def holds(self) -> bool:
        return self.kind in get_args(HoldKind)

    @property
    def waits_for_room(self) -> bool:
        """Whether it ends by itself when the disk has room, also under a supervisor that takes the run over."""
        return self.kind in {"disk_full", "no_inodes"}


PLAIN = Why()


# Levels of the machine's readings.

Level = Literal["safe", "warning", "danger", "underused", "unknown"]
GPU_IS_GONE = ("lost", "needs a reset")
"""How the trouble of a GPU begins that no program can use until it is reset."""
SLOWED_BY_FAULT = frozenset({"hardware slowdown", "thermal (hardware)", "power brake"})
"""Reasons for which the hardware itself slows down: its cooling or power supply, no setting and no power limit."""
VRAM_STABLE_PCT = 95.0
"""VRAM warns from here with the profile ``stable``."""
RAM_SHORT_BYTES = 4e9
"""Less available RAM than this is a danger."""
VRAM_UNDERUSED_PCT = 90.0
UTIL_UNDERUSED_PCT = 80.0
"""A training that uses its GPU well keeps it at 80 to 100 %. Shown, not notified."""


MARGIN = 0.02
"""Share of a bound, or of a value, within which a level stays: at a bound it would flap."""
FAR = 1e300
"""Above every reading, and still a JSON number."""


class Metric(msgspec.Struct, frozen=True):
    """One row: values beyond ``warning``/``danger`` are worse; ``falling``: low is bad; ``underused``: room left."""

    unit: str
    warning: float
    danger: float
    falling: bool = False
    underused: float | None = None
    alarm: Level = "danger"
    """At this level it is an incident; others are only shown."""

    def level_of(self, value: float, before: Level = "unknown") -> Level:
        """The level of a value; one on a bound has the milder one.

        A level ``before`` is left for a better one only beyond the margin of its bound.
        """
        sign = -1.0 if self.falling else 1.0
        bounds: tuple[tuple[Level, float], ...] = (("danger", self.danger), ("warning", self.warning))
        for level, bound in bounds:
            if sign * value > sign * bound - (MARGIN * bound if before == level else 0.0):
                return level
        if self.underused is None:
            return "safe"
        return "underused" if value < self.underused * (1.0 - MARGIN if before == "safe" else 1.0) else "safe"

    def limit(self, level: Level) -> float | None:
        """The bound that a value of this level is beyond; None if it has none."""
        return {"danger": self.danger, "warning": self.warning}.get(level)


@lru_cache(maxsize=8)
def metrics(settings: HealthSettings, *, stable: bool = False) -> dict[str, Metric]:
    """Return the table for any profile, or for the ``stable`` one. Keys: metric name without the number of the GPU."""
    return {
        "temp": Metric("°C", settings.temp_warning_c, settings.temp_danger_c),
        "vram": Metric(
            "%",
            VRAM_STABLE_PCT if stable else settings.vram_warning_pct,
            FAR,
            underused=VRAM_UNDERUSED_PCT,
            alarm="warning",
        ),
        "ram_used": Metric("%", settings.ram_warning_pct, settings.ram_danger_pct),
        "ram_available": Metric("B", 8e9, RAM_SHORT_BYTES, falling=True),
        "swap_used": Metric("B", 500e6, 2e9),
        "disk_free": Metric("B", settings.disk_warning_bytes, settings.disk_danger_bytes, falling=True),
    }


class HealthReading(msgspec.Struct, frozen=True, kw_only=True):
    """One metric with its level. ``metric`` names it (``gpu0.temp``, ``ram_used`` …); value None = unknown."""

    metric: str
    value: float | None
    unit: str
    level: Level


# A reading that is worse than its limit, as a clause for people.

ROWS: dict[str, tuple[str, str, str]] = {
    "temp": ("{device} is hot", "{device} too hot", "{device} temperature"),
    "vram": ("{device} memory nearly full", "{device} memory full", "{device} memory"),
    "ram_used": ("RAM filling up", "RAM nearly full", "RAM used"),
    "ram_available": ("little RAM available", "almost no RAM available", "RAM available"),
    "swap_used": ("swap in use", "much swap in use", "swap used"),
    "disk_free": ("disk filling up", "disk nearly full", "disk free"),
}
"""By row: what it is at the level warning, at danger, and otherwise."""


FAULTS = {"lost": "GPU {} lost", "slowed": "GPU {} slowed down"}
"""By the end of an incident's class."""


def reading_name(metric: str) -> str | None:
    """``GPU 3 temperature``, ``RAM used``, ``GPU 3 lost``; None if it is neither a reading nor a fault of a GPU."""
    device, _, row = metric.rpartition(".")
    number = device.removeprefix("gpu")
    if row in ROWS and (not device or number.isdecimal()):
        return ROWS[row][2].format(device=f"GPU {number}")
    return FAULTS[row].format(number) if row in FAULTS and number.isdecimal() else None


def amount(row: str, value: float, unit: str) -> str:
    """A value with its unit: memory in GiB, room on a disk in GB."""
    if unit != "B":
        return f"{value:.0f} {unit}"
    return size(value) if row == "disk_free" else memory(value)


def health_clause(metric: str, value: float, unit: str, level: Level, limit: float | None) -> str:
    """``GPU 3 too hot: 86 °C (limit 85)``; a level that is none of the bad ones has its name for a limit.

    ``metric``: ``gpu3.temp``, ``ram_used`` …; ``limit``: the bound of the level, in ``unit``.
    """
    device, _, row = metric.rpartition(".")
    number = device.removeprefix("gpu")
    words = ROWS[row][{"warning": 0, "danger": 1}.get(level, 2)].format(device=f"GPU {number}")
    if level not in {"warning", "danger"}:
        return f"{words} {amount(row, value, unit)} ({level})"
    said = "" if limit is None else f" (limit {f'{limit:.0f}' if unit == '°C' else amount(row, limit, unit)})"
    return f"{words}: {amount(row, value, unit)}{said}"


# Length of a training before its first step, from its settings, its data and the pace of earlier runs.


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
    batch: str = "batch_size"
    batch_default: int = 1
    accumulation: str = "gradient_accumulation_steps"
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
    keys: LengthKeys, settings: Mapping[str, Any], *, samples: int | None, pace: Pace | None
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


VAGUE_NAMES = frozenset({"steps", "iterations", "iters", "epochs"})
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
