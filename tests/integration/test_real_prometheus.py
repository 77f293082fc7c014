"""Debian's Prometheus scrapes two real runs at one endpoint, and answers what is asked about them."""

import json
import shutil
import subprocess
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.e2e_world import PATIENCE_S, TRAINER, World, until
from tests.fakes.ssh_host import free_port
from tests.tiers import SECOND_TIER

pytestmark = [
    SECOND_TIER,
    pytest.mark.skipif(
        shutil.which("prometheus") is None or shutil.which("promtool") is None,
        reason="Prometheus is not installed (Debian: apt install prometheus)",
    ),
]
SCORE = "import sys; print('fid:', 100 - int(sys.argv[1][-20:-12]))"
CONFIG = """
global: {{scrape_interval: 1s}}
scrape_configs:
  - job_name: trainwatch
    static_configs: [{{targets: ["127.0.0.1:{port}"]}}]
"""


class Prometheus:
    """A server of its own on loopback, with its data in ``folder``."""

    def __init__(self, folder: Path, target: int) -> None:
        folder.mkdir()
        self.port = free_port()
        config = folder / "prometheus.yml"
        config.write_text(CONFIG.format(port=target))
        self._log = (folder / "log").open("wb")
        self.process = subprocess.Popen(
            ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder / 'data'}",
             f"--web.listen-address=127.0.0.1:{self.port}"],
            cwd=folder, stdin=subprocess.DEVNULL, stdout=self._log, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def asked(self, place: str, **words: str) -> Any:
        """The ``data`` of its answer; None while it does not answer."""
        url = f"http://127.0.0.1:{self.port}/api/v1/{place}?{urllib.parse.urlencode(words)}"
        try:
            with urllib.request.urlopen(url, timeout=30) as reply:
                found = json.load(reply)
        except OSError:
            return None
        assert found["status"] == "success"
        return found["data"]

    def values(self, expression: str) -> dict[str, float]:
        """Value by run."""
        found = self.asked("query", query=expression)
        rows = found["result"] if found is not None else []
        return {row["metric"].get("run", ""): float(row["value"][1]) for row in rows}

    def end(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._log.close()


@pytest.fixture
def runs(world: World) -> Iterator[tuple[World, int]]:
    """Two runs with one endpoint: "job" with scores, which waits at step 70, and "other" without a config file."""
    port = free_port()
    more: dict[str, dict[str, Any]] = {
        "metrics": {"prometheus": f"127.0.0.1:{port}"},
        "evaluate": {"command": [sys.executable, "-c", SCORE, "{checkpoint}"], "memory_bytes": 2e9},
    }
    world.write("--steps", "100", "--save-every", "20", "--step-time", "0.05", "--hold-at", "70", more=more)
    world.headless()
    other = world.short / "other"
    other.mkdir()
    words = ["--output-dir", "out", "--steps", "100000", "--step-time", "0.05", "--save-every", "1000"]
    world.begin("run", "--name", "other", "--output-dir", "out", "--headless", "--", sys.executable, str(TRAINER), *words,
                cwd=other)  # fmt: skip
    yield world, port
    (world.out / "go").touch()


def test_a_real_prometheus_scrapes_both_runs_and_answers(runs: tuple[World, int]) -> None:
    world, port = runs
    server = Prometheus(world.short / "prometheus", port)
    try:
        until(lambda: len(server.values('trainwatch_run_state{state="running"} == 1')) == 2, "both runs are known")
        job, other = sorted(server.values("trainwatch_run_info"), key=lambda run: run.startswith("other"))
        until(lambda: server.values("trainwatch_checkpoint_score").get(job) == 40.0, "the score of step 60")
        assert server.values("trainwatch_best_checkpoint_step") == {job: 60.0}
        until(lambda: server.values("trainwatch_current_step").get(job, 0) >= 69, "its newest step")
        until(lambda: server.values("rate(trainwatch_step_total[10s])").get(other, 0) > 0, "the speed of the other")
        assert server.values("trainwatch_supervisor_up") == {job: 1.0, other: 1.0}
        assert server.values("trainwatch_host_memory_size_bytes").keys() == {job, other}
        page = server_page(port)
        check = subprocess.run(["promtool", "check", "metrics"], input=page, capture_output=True, check=False)
        assert (check.returncode, check.stdout + check.stderr) == (0, b"")
        known = server.asked("metadata")
        names = {line.split()[2].decode() for line in page.splitlines() if line.startswith(b"# HELP ")}
        assert names <= known.keys()
        assert known["trainwatch_step_total"][0]["type"] == "counter"
        (target,) = server.asked("targets", state="active")["activeTargets"]
        assert (target["health"], target["lastError"]) == ("up", "")
    finally:
        server.end()


def server_page(port: int) -> bytes:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as reply:
        return bytes(reply.read())


@pytest.mark.skipif(
    shutil.which("prometheus-node-exporter") is None,
    reason="node_exporter is not installed (Debian: prometheus-node-exporter)",
)
def test_node_exporter_shows_the_file_that_was_written_for_it(runs: tuple[World, int]) -> None:
    world, _ = runs
    folder = world.short / "textfiles"
    folder.mkdir()
    port = free_port()
    words = ["--collector.disable-defaults", "--collector.textfile", f"--collector.textfile.directory={folder}"]
    with (world.short / "node.log").open("wb") as log:
        node = subprocess.Popen(
            ["prometheus-node-exporter", *words, f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log
        )

    def shown() -> bytes | None:
        (folder / "trainwatch.new").write_text(world.asks("metrics").out)
        (folder / "trainwatch.new").replace(folder / "trainwatch.prom")
        try:
            page = server_page(port)
        except OSError:
            return None
        return page if page.count(b'state="running"} 1') == 2 else None

    try:
        page = until(shown, "both runs by node_exporter")
        assert b"node_textfile_scrape_error 0" in page
        assert b"trainwatch_step_total{" in page
    finally:
        node.terminate()
        node.wait(PATIENCE_S)
