"""A metric for other programs: its name, unit and text, and a value of it."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

UNITS = {
    "_bytes_per_second": "By/s", "_seconds": "s", "_bytes": "By", "_hertz": "Hz", "_watts": "W", "_celsius": "Cel",
    "_ratio": "1", "_total": "",
}  # fmt: skip
"""Ends of names with the units of UCUM, which OpenTelemetry has instead: https://ucum.org/ucum."""


class Metric(NamedTuple):
    """A metric with its text for people, named for Prometheus. A counter's name ends with ``_total``."""

    name: str
    kind: Literal["gauge", "counter"]
    help: str

    @property
    def plain(self) -> tuple[str, str]:
        """Name and unit for OpenTelemetry: ``("trainwatch.gpu_power", "W")``.

        Prometheus makes ``name`` of them again when it receives them:
        https://opentelemetry.io/docs/specs/otel/compatibility/prometheus_and_openmetrics/.
        """
        end = next((end for end in UNITS if self.name.endswith(end)), "")
        return self.name.removesuffix(end).replace("_", ".", 1), UNITS.get(end, "")


class Sample(NamedTuple):
    """A value of the metric ``name``; None = unknown, and is not told."""

    name: str
    value: float | None
    labels: Mapping[str, str]
