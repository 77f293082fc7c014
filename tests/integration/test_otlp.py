"""OpenTelemetry: a collector gets the values of the page for Prometheus; one that does not take them harms nothing."""

import re
from pathlib import Path

import pytest

from tests.fakes.collector import collector
from tests.fakes.e2e_world import World, until, world
from tests.integration.test_metrics_verb import made
from tests.tiers import SECOND_TIER
from trainwatch.core.app.metrics_out.otlp_export import OtlpExport
from trainwatch.core.app.metrics_out.otlp_sender import OtlpSender
from trainwatch.core.app.metrics_out.prometheus_page import prometheus_page
from trainwatch.core.store.lock import SupervisorLock
from trainwatch.core.views.metrics_out.run_metrics import METRICS

pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="OpenTelemetry's exporter is not installed")
__all__ = ["world"]


def test_the_collector_gets_what_stands_on_the_page_for_prometheus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAINWATCH_HOME", str(tmp_path))
    run = made(tmp_path, "a-1")
    with collector() as there, SupervisorLock(run.lock):
        export = OtlpExport(run, there.address)
        assert export.send() is None
        page = prometheus_page(lambda _problem: None)
        export.close()
        assert there.resource().items() >= {("service.name", "trainwatch"), ("service.instance.id", "a-1")}
        found = there.metrics()
        lines = re.findall(r'^(\w+)\{run="a-1"(?:,(\w+)="(\w+)")?\} (\S+)$', page, re.MULTILINE)
        assert len(lines) >= 30
        names = {metric.name: metric.plain[0] for metric in METRICS}
        for name, label, text, value in lines:
            if "timestamp" not in name:  # computed from the age, at two times
                assert there.values(names[name])[((label, text),) if label else ()] == float(value)
        assert {names[line.split()[2]] for line in page.splitlines() if line.startswith("# TYPE")} == {
            *found, "trainwatch.build_info", "trainwatch.unreadable_runs"}  # fmt: skip
        assert found["trainwatch.host_memory_used"].unit == "By"
        assert found["trainwatch.step"].sum.is_monotonic
        (point,) = found["trainwatch.step"].sum.data_points
        assert 90 <= (point.time_unix_nano - point.start_time_unix_nano) / 1e9 <= 1000
        assert found["trainwatch.current_step"].WhichOneof("data") == "gauge"


def test_names_and_units_become_those_of_prometheus_again() -> None:
    ends = {
        "s": "_seconds",
        "By": "_bytes",
        "By/s": "_bytes_per_second",
        "Hz": "_hertz",
        "W": "_watts",
        "Cel": "_celsius",
        "1": "_ratio",
        "": "",
    }
    for metric in METRICS:
        name, unit = metric.plain
        again = name.replace(".", "_") + ends[unit] + ("_total" if metric.kind == "counter" else "")
        assert again == metric.name
    assert len({metric.plain[0] for metric in METRICS}) == len(METRICS)


def test_a_collector_that_fails_or_is_dead_is_told_once_and_when_it_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAINWATCH_HOME", str(tmp_path))
    run = made(tmp_path, "a-1")
    told: list[str | None] = []
    with collector() as there:
        there.status = 400
        sender = OtlpSender(run, there.address, 0.02, told.append)
        sender.start()
        until(lambda: there.asked >= 3, "three exports")
        assert len(told) == 1
        assert f"127.0.0.1:{there.port}" in (told[0] or "")
        assert "400" in (told[0] or "") or "Bad Request" in (told[0] or "")
        there.status = 200
        until(lambda: told[1:] == [None], "it is told that it works again")
        port = there.port
    until(lambda: len(told) == 3, "the collector is gone")
    with collector(port):
        until(lambda: told[3:] == [None], "it is back")
    sender.stop()


def test_the_last_values_are_sent_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINWATCH_HOME", str(tmp_path))
    run = made(tmp_path, "a-1", "finished")
    with collector() as there:
        sender = OtlpSender(run, there.address, 1000.0, lambda _: None)
        sender.start()
        sender.stop()
        assert there.values("trainwatch.run_state")[(("state", "finished"),)] == 1.0


def test_a_missing_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINWATCH_HOME", str(tmp_path))
    run = made(tmp_path, "a-1")
    monkeypatch.setitem(__import__("sys").modules, "opentelemetry.exporter.otlp.proto.http.metric_exporter", None)
    told: list[str | None] = []
    sender = OtlpSender(run, "http://127.0.0.1:1", 0.01, told.append)
    sender.start()
    until(lambda: bool(told), "it is told")
    sender.stop()
    assert "pip install 'trainwatch-tui[otel]'" in (told[0] or "")


@SECOND_TIER
@pytest.mark.parametrize("kind", ["slow", "failing", "dead"])
def test_a_run_is_not_touched_by_a_collector_that_takes_nothing(world: World, kind: str) -> None:
    with collector() as there:
        if kind == "slow":
            there.open.clear()
        elif kind == "failing":
            there.status = 503
        address = there.address
        if kind == "dead":
            there.close()
        world.write("--steps", "60", "--step-time", "0.1", more={"metrics": {"otlp": address, "otlp_s": 1}})
        watcher = world.headless()
        assert watcher.ends() == 0
        assert kind == "dead" or there.asked >= 1
    assert world.story().state == "finished"
    assert len(world.story().attempts) == 1
    assert not world.story().incidents
    assert "Traceback" not in watcher.said
