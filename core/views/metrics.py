"""Metrics in words and for other programs."""

import math
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from ..model.text import GIB, LEAST_GIB, MIB, LazyPattern
from . import quantity
from .words import passing

if TYPE_CHECKING:
    from ..model.ports import Point


# Metrics in words: title and unit of each series of the history, values as text, programs for metric files.


def view_command(source: str, folder: str) -> str | None:
    """The command line that shows metric files of this kind; None if no program is known."""
    return shlex.join(("tensorboard", "--logdir", folder)) if source == "tensorboard" else None


MEMORY, BYTES, RATE, PACE, COUNT = "memory", "bytes", "bytes/s", "pace", "count"
CORES = "cores"
"""Units whose values are shown in one of several: 15.2 GiB, 212 GB, 870 MB/s, 2.50 s/step or 8.30 steps/s.

Counts have none; the mean of several is shown whole.
"""


class SeriesWords(msgspec.Struct, frozen=True):
    """``unit``: MEMORY, BYTES, RATE, PACE, COUNT, CORES, or the unit as it is written (empty: none)."""

    title: str
    unit: str = ""
    total: bool = False
    """The series counts since the start; its rate is shown."""


KNOWN: dict[str, SeriesWords] = {
    "progress.loss": SeriesWords("loss"),
    "progress.sec_per_step": SeriesWords("speed", PACE),
    "progress.lr": SeriesWords("lr"),
    "progress.step": SeriesWords("step", COUNT),
    "progress.epoch": SeriesWords("epoch"),
    "gpu.util": SeriesWords("util", "%"),
    "gpu.vram": SeriesWords("VRAM", MEMORY),
    "gpu.temp": SeriesWords("temperature", "°C"),
    "gpu.power": SeriesWords("power", "W"),
    "gpu.clock": SeriesWords("clock", "MHz"),
    "gpu.mem_clock": SeriesWords("memory clock", "MHz"),
    "gpu.fan": SeriesWords("fan", "%"),
    "gpu.pcie_in": SeriesWords("PCIe in", RATE),
    "gpu.pcie_out": SeriesWords("PCIe out", RATE),
    "host.ram_used": SeriesWords("RAM used", MEMORY),
    "host.ram_available": SeriesWords("RAM available", MEMORY),
    "host.swap_used": SeriesWords("swap used", MEMORY),
    "host.disk_free": SeriesWords("disk free", BYTES),
    "host.cpu": SeriesWords("CPU of the machine", "%"),
    "host.psi_memory": SeriesWords("waiting for memory", "%"),
    "host.disk_read": SeriesWords("disks read", RATE),
    "host.disk_written": SeriesWords("disks written", RATE),
    "host.net_in": SeriesWords("network in", RATE),
    "host.net_out": SeriesWords("network out", RATE),
    "process.cpu": SeriesWords("CPU of the run", CORES),
    "process.rss": SeriesWords("RAM of the run", MEMORY),
    "process.procs": SeriesWords("processes", COUNT),
    "process.read_bytes": SeriesWords("read", RATE, total=True),
    "process.write_bytes": SeriesWords("written", RATE, total=True),
}
"""Series of the history by source and column; of a GPU without its number."""
ORDER = ("progress", "metric", "gpu", "process", "host")
"""Sources in the order of the page: what the training is about first."""
LAST = ("step", "global_step", "epoch")
"""Names of counters: their charts are lines, and come last."""
_PER_SECOND = LazyPattern(
    r"(token|sample|image|example|frame|step|iter(?:ation)?)s?_?(?:/|_?per_)(?:s$|sec)", re.IGNORECASE
)


_OF_TRAINING = r"(?:(?:train|training|tr)[_/. ])?"
SAME = {
    series: LazyPattern(_OF_TRAINING + names, re.IGNORECASE)
    for series, names in {
        "progress.loss": r"(?:(?:avr|avg|average|mean|running|total|cur|current|step)[_ ]?)?loss",
        "progress.lr": r"(?:lr|learning[_ -]?rate)",
        "progress.sec_per_step": r"(?:(?:it|iter|iteration|step)s?(?:/|_per_)(?:s|sec|second)"
        r"|(?:s|sec|seconds)(?:/|_per_)(?:it|iter|iteration|step))",
        "progress.step": r"(?:global[_ ]?)?(?:step|iter|iteration)",
        "progress.epoch": r"epoch",
    }.items()
}
"""Names by which trainers print what a series of the progress shows."""
ALWAYS_SAME = frozenset({"progress.sec_per_step", "progress.step", "progress.epoch"})
"""Series of which all these names are the same quantity, however many a log has."""


def words_of(metric: str) -> SeriesWords:
    """The title and unit of a series. One that is not known keeps its name."""
    source, _, column = metric.partition(".")
    if source == "metric":
        rate = _PER_SECOND.search(column)
        return SeriesWords(column, f"{rate[1].lower()}s/s" if rate else "")
    gpu = re.fullmatch(r"gpu(\d+|\*)", source)
    known = KNOWN.get(f"gpu.{column}" if gpu else metric, SeriesWords(column.replace("_", " ")))
    which = f"GPU {gpu[1]} ".replace("* ", "") if gpu else ""
    return msgspec.structs.replace(known, title=f"{which}{known.title}")


def in_order(metrics: Sequence[str]) -> tuple[str, ...]:
    """In the order of the page; those of a source keep theirs."""

    def place(metric: str) -> tuple[bool, int]:
        source = metric.partition(".")[0].rstrip("0123456789")
        return re.split(r"[./]", metric)[-1] in LAST, ORDER.index(source) if source in ORDER else len(ORDER)

    return tuple(sorted(metrics, key=place))


def without_doubles(metrics: Sequence[str]) -> tuple[str, ...]:
    """Without names of the trainer that another series shows already: loss, avr_loss, lr, it/s, step, epoch.

    Several names of one kind, such as a loss and its average, are different values: only the plain one is left out.
    """
    doubles = {f"metric.{m.partition('.')[2]}" for m in metrics if m.startswith("progress.")}
    for series, same in SAME.items():
        if series in metrics:
            named = [m for m in metrics if m.startswith("metric.") and same.fullmatch(m.partition(".")[2])]
            doubles |= set(named) if len(named) == 1 or series in ALWAYS_SAME else set()
    return tuple(m for m in metrics if m not in doubles)


def overlaid(metrics: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The charts of these metrics, each with what it draws: a reading of several GPUs is one chart, ``gpu*.util``."""
    several = len({m.partition(".")[0] for m in metrics if _OF_GPU.match(m)}) > 1
    found: dict[str, tuple[str, ...]] = {}
    for metric in metrics:
        chart = _OF_GPU.sub("gpu*.", metric) if several else metric
        found[chart] = (*found.get(chart, ()), metric)
    return found


_OF_GPU = re.compile(r"gpu\d+\.")
HIGH_IS_WORSE = frozenset({"vram", "temp", "fan"})


def worst_of(newest: Mapping[str, float]) -> tuple[str, str]:
    """The GPU that one looks for among several, by the newest value of each: lowest GPU 6, highest GPU 3; its series.

    Heat and full memory are worse where they are high; work that is not done where it is low.
    """
    high = next(iter(newest)).partition(".")[2] in HIGH_IS_WORSE
    worst = (max if high else min)(newest, key=newest.__getitem__)
    return worst, f"{'highest' if high else 'lowest'} GPU {worst.partition('.')[0][3:]}"


def matching(metrics: Sequence[str], sought: str) -> tuple[str, ...]:
    """Those whose name or title contains a text, or matches it as a regular expression; upper case does not matter."""
    found = passing(sought)
    return tuple(m for m in metrics if found(m) or found(words_of(m).title))


def unit_of(metric: str, points: Sequence["Point"]) -> str:
    """The unit in which a series is shown; of the pace that of most of its values, as slow steps begin each attempt."""
    unit = words_of(metric).unit
    if unit != PACE:
        return unit
    units = [quantity.pace_unit(p[2]) for p in reversed(points) if p[2] > 0]
    return max(units, key=units.count, default=quantity.S_PER_STEP)  # of as many values, that of the newest


def shown_points(metric: str, points: Sequence["Point"], unit: str) -> tuple["Point", ...]:
    """The points in a unit of ``unit_of``: rates of totals, the pace as s/step or steps/s."""
    words = words_of(metric)
    if words.total:  # what it grew by in a second, between neighbours; it begins anew with each attempt
        grown = [(a, b) for a, b in pairwise(points) if b[2] >= a[2] and b[0] > a[0]]
        rates = (((b[0] + a[0]) / 2, (b[2] - a[2]) / (b[0] - a[0])) for a, b in grown)
        return tuple((t, rate, rate, rate) for t, rate in rates)
    if words.unit != PACE:
        return tuple(points)
    known = [p for p in points if p[1] > 0]
    if unit == quantity.S_PER_STEP:
        return tuple(known)
    return tuple((t, 1 / high, 1 / mean, 1 / low) for t, low, mean, high in known)


def shown_values(metric: str, values: tuple[float | None, ...], unit: str, apart_s: float) -> tuple[float | None, ...]:
    """Values at times ``apart_s`` from each other in a unit of ``unit_of``: as ``shown_points``."""
    if words_of(metric).total:
        grown = ((None if a is None or b is None else b - a) for a, b in pairwise((None, *values)))
        return tuple(None if by is None or by < 0 else by / apart_s for by in grown)
    if unit == quantity.STEPS_PER_S:
        return tuple(1 / v if v else None for v in values)
    return values


SHOWN_AS: dict[str, Callable[[float], str]] = {
    MEMORY: quantity.memory,
    BYTES: quantity.size,
    RATE: lambda value: f"{quantity.size(value)}/s",
    COUNT: quantity.count,
    CORES: quantity.cores,
}


def value_text(value: float | None, unit: str) -> str:
    """A value with its unit."""
    if value is None:
        return quantity.UNKNOWN
    return SHOWN_AS[unit](value) if unit in SHOWN_AS else f"{quantity.number(value)} {unit}".rstrip()


def axis_unit(unit: str, low: float, high: float) -> tuple[float, str]:
    """(factor, word) of an axis: ticks are values divided by the factor."""
    largest = max(abs(low), abs(high))
    if unit == MEMORY:
        return (GIB, "GiB") if largest >= LEAST_GIB * GIB else (MIB, "MiB")
    if unit not in {BYTES, RATE}:
        return 1.0, "" if unit == COUNT else unit
    factor, word = next(((f, w) for f, w in quantity.SIZE_UNITS if largest >= f), (1.0, "B"))
    return factor, f"{word}/s" if unit == RATE else word


def fitted(tick: str, cells: int) -> str:
    """A tick in at most so many cells: with fewer digits, or with an exponent, never cut. ``cells``: at least 6."""
    if len(tick) <= cells:
        return tick
    value = float(tick.replace(",", ""))
    forms = [f"{value:.{digits}g}" for digits in (3, 2, 1)]
    forms += [quantity.exponent(value, digits) for digits in (2, 1, 0)]
    return next((form for form in forms if len(form) <= cells and "e+" not in form and "e-0" not in form), forms[-1])


def tick_text(value: float, step: float) -> str:
    """A tick with as many decimals as the distance of the ticks has: 0.050, 2.5, 1,200, 1e-5. ``step`` 0: not even."""
    if value != 0 and (step <= 0 or not 1e-3 <= abs(value) < 1e6):
        return quantity.number(value)
    decimals = next((d for d in range(7) if abs(round(step, d) - step) < step / 1000), 6)
    return f"{value:,.{decimals}f}" if value else "0"


# The Prometheus text format, version 0.0.4: https://prometheus.io/docs/instrumenting/exposition_formats/.

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


Values = Callable[[Any], Iterable[tuple[float | None, Mapping[str, str]]]]
"""Of a run (``RunNow``) → its values, None = unknown, each with its labels."""


class Metric(NamedTuple):
    """A metric with its text for people, named for Prometheus. A counter's name ends with ``_total``."""

    name: str
    kind: Literal["gauge", "counter"]
    help: str
    values: Values = lambda _: ()


class Sample(NamedTuple):
    """A value of the metric ``name``; None = unknown, and is not told."""

    name: str
    value: float | None
    labels: Mapping[str, str]


def exposition(metrics: Iterable[Metric], samples: Iterable[Sample]) -> str:
    """All samples under their metrics, in the order of ``metrics``. Raises KeyError for a sample of no metric."""
    lines: dict[str, list[str]] = {metric.name: [] for metric in metrics}
    for sample in samples:
        found = lines[sample.name]
        if sample.value is not None and not math.isnan(sample.value):
            labels = ",".join(f'{key}="{_label(text)}"' for key, text in sample.labels.items())
            found.append(f"{sample.name}{{{labels}}} {_number(sample.value)}\n")
    return "".join(
        f"# HELP {m.name} {_escaped(m.help)}\n# TYPE {m.name} {m.kind}\n{''.join(lines[m.name])}"
        for m in metrics
        if lines[m.name]
    )


def _number(value: float) -> str:
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(float(value))


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")


def _label(text: str) -> str:
    clean = text.encode(errors="replace").decode()  # a file name that is not UTF-8 has lone surrogates
    return _escaped(clean).replace('"', r"\"")
