"""The Prometheus text format, version 0.0.4: https://prometheus.io/docs/instrumenting/exposition_formats/."""

import math
from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metric(NamedTuple):
    """A metric with its text for people, named for Prometheus. A counter's name ends with ``_total``."""

    name: str
    kind: Literal["gauge", "counter"]
    help: str


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
            found.append(_line(sample.name, sample.value, sample.labels))
    parts = []
    for metric in metrics:
        if lines[metric.name]:
            parts += [f"# HELP {metric.name} {_help(metric.help)}", f"# TYPE {metric.name} {metric.kind}"]
            parts += lines[metric.name]
    return "".join(f"{part}\n" for part in parts)


def _line(name: str, value: float, labels: Mapping[str, str]) -> str:
    words = ",".join(f'{key}="{_label(text)}"' for key, text in labels.items())
    return f"{name}{{{words}}} {_number(value)}"


def _number(value: float) -> str:
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(float(value))


def _help(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")


def _label(text: str) -> str:
    clean = text.encode(errors="replace").decode()  # a file name that is not UTF-8 has lone surrogates
    return _help(clean).replace('"', r"\"")
