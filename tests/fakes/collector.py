"""A collector of OpenTelemetry on loopback, which decodes what it gets and can be slow, failing, or dead."""

import contextlib
import gzip
import http.server
import threading
from collections.abc import Iterator
from typing import Any


class Collector:
    """``got``: (resource attributes, metric name) with unit, kind and points of the newest request.

    ``status``: of the next answers. ``open``: answers wait while it is not set.
    """

    def __init__(self, port: int = 0) -> None:
        from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

        self.status = 200
        self.open = threading.Event()
        self.open.set()
        self.requests: list[Any] = []
        self.asked = 0
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.asked += 1
                outer.open.wait()
                if outer.status == 200:
                    assert (self.path, self.headers["Content-Type"]) == ("/v1/metrics", "application/x-protobuf")
                    if self.headers.get("Content-Encoding") == "gzip":
                        body = gzip.decompress(body)
                    outer.requests.append(ExportMetricsServiceRequest.FromString(body))
                with contextlib.suppress(OSError):
                    self.send_response(outer.status)
                    self.send_header("Content-Length", "0")
                    self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def resource(self) -> dict[str, str]:
        """Attributes of the resource of the newest request."""
        (found,) = self.requests[-1].resource_metrics
        return {a.key: a.value.string_value for a in found.resource.attributes}

    def metrics(self) -> dict[str, Any]:
        """The metrics of the newest request by name."""
        (found,) = self.requests[-1].resource_metrics
        (scope,) = found.scope_metrics
        return {metric.name: metric for metric in scope.metrics}

    def values(self, name: str) -> dict[tuple[tuple[str, str], ...], float]:
        """Value by attributes (without the run)."""
        metric = self.metrics()[name]
        return {
            tuple((a.key, a.value.string_value) for a in point.attributes if a.key != "run"): point.as_double
            for point in getattr(metric, metric.WhichOneof("data")).data_points
        }

    def close(self) -> None:
        self.open.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@contextlib.contextmanager
def collector(port: int = 0) -> Iterator[Collector]:
    made = Collector(port)
    try:
        yield made
    finally:
        made.close()
