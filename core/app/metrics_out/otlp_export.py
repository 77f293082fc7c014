"""The newest values of a run, sent to a collector of OpenTelemetry by OpenTelemetry's own exporter (OTLP over HTTP).

One list of metrics serves this and the page for Prometheus: ``views.metrics_out``.
"""

import logging
import os
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from trainwatch import __version__

from ...model.text.edge import EDGE
from .newest_values import run_now

if TYPE_CHECKING:
    from ...store.run_directory import RunDirectory
    from ...views.metrics_out.metric import Sample

EXTRA = "trainwatch-tui[otel]"
SIGNAL_PATH = "/v1/metrics"
"""Where a collector takes metrics, if the address names no path: https://opentelemetry.io/docs/specs/otlp/."""
EXPORT_S = 10.0
"""Longest time of one export with the exporter's repetitions: its own default."""


class OtlpExport:
    """Sends the values of one run. Raises ImportError if the extra is not installed."""

    def __init__(self, run: "RunDirectory", address: str) -> None:
        from urllib.parse import urlsplit

        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter

        parts = urlsplit(address)
        self._run = run
        self.place = parts.hostname if parts.port is None else f"{parts.hostname}:{parts.port}"
        self._said = _LastMessage()
        self._exporter = OTLPMetricExporter(
            endpoint=address if parts.path.strip("/") else f"{address.rstrip('/')}{SIGNAL_PATH}", timeout=EXPORT_S
        )

    def send(self) -> str | None:
        """Send the newest values. Returns why the collector has not got them; None if it has."""
        from opentelemetry.sdk.metrics.export import MetricExportResult

        now = run_now(self._run)
        if now is None:
            return None
        from ...views.metrics_out.run_metrics import run_samples

        wall0 = float(now.status["wall0"])
        self._said.text = ""
        found = self._exporter.export(_metrics_data(run_samples(now), self._run.id, int(wall0 * 1e9)))
        if found is MetricExportResult.SUCCESS:
            return None
        return EDGE.text(self._said.text.strip()[:300]) or "the exporter gives no reason"

    def close(self) -> None:
        """End the exporter, and its retries if it is sending. May be called from another thread."""
        self._exporter.shutdown()


class _LastMessage(logging.Handler):
    """The exporter says only to its logger why it failed, and a supervisor has its own log."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.text = ""
        logger = logging.getLogger("opentelemetry")
        logger.propagate = False
        logger.addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        self.text = record.getMessage()


def _metrics_data(samples: Iterable["Sample"], run: str, start_ns: int) -> Any:
    """OpenTelemetry's own structure of these samples. Counters count from ``start_ns``, the start of the run."""
    from opentelemetry.sdk.metrics.export import (
        AggregationTemporality,
        Gauge,
        Metric,
        MetricsData,
        NumberDataPoint,
        ResourceMetrics,
        ScopeMetrics,
        Sum,
    )
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope

    from ...views.metrics_out.run_metrics import METRICS

    now_ns = time.time_ns()
    points: dict[str, list[Any]] = {}
    for sample in samples:
        if sample.value is not None:
            labels = {key: EDGE.text(text) for key, text in sample.labels.items()}
            points.setdefault(sample.name, []).append(NumberDataPoint(labels, start_ns, now_ns, float(sample.value)))
    told = []
    for metric in METRICS:
        if metric.name in points:
            name, unit = metric.plain
            found = points[metric.name]
            data: Any = (
                Sum(found, AggregationTemporality.CUMULATIVE, is_monotonic=True)
                if metric.kind == "counter"
                else Gauge(found)
            )
            told.append(Metric(name, metric.help, unit, data))
    resource = Resource.create(
        {
            "service.name": "trainwatch",
            "service.version": __version__,
            "service.instance.id": run,
            "host.name": os.uname().nodename,
        }
    )
    scope = ScopeMetrics(InstrumentationScope("trainwatch", __version__), told, "")
    return MetricsData([ResourceMetrics(resource, [scope], "")])
