"""The page for Prometheus: its text format, its names and units, and that the unknown has no line."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from trainwatch.core.model.observation import GpuReading, GpuSample, HostSample, MetricValues
from trainwatch.core.model.progress import Progress
from trainwatch.core.model.story import RunStory, Situation, SupervisorLife
from trainwatch.core.views.metrics import Metric, Sample, exposition
from trainwatch.core.views.run_metrics import METRICS, RunNow, run_samples
from trainwatch.core.views.run_summary import summarise
from trainwatch.core.views.state.status import status_object

LIFE = SupervisorLife(pid=9, alive=True, responsive=True, age_s=0.5)


def page(*runs: RunNow) -> str:
    return exposition(METRICS, [sample for run in runs for sample in run_samples(run)])


def run_now(name: str = "luca-1", *, progress: Progress | None = None, life: Any = LIFE, **more: Any) -> RunNow:
    now = Situation(
        story=RunStory(state="running", wall0=1000.0),
        progress=progress,
        progress_t=999.0,
        now_t=1000.0,
        now_wall=2000.0,
    )
    status = status_object(now, run="luca", run_id=name, supervisor=life)
    return RunNow(said=summarise(now), status=status, wall=2000.0, **more)


FULL = (
    run_now(
        progress=Progress(step=90, total_steps=400, epoch=1.5, loss=0.25, lr=1e-5, sec_per_step=0.5, eta_s=155.0),
        preset="kohya",
        highest_step=120.0,
        gpu=GpuSample(
            t=999, gpus=(GpuReading(index=1, util_pct=97, mem_used_bytes=5e9, clock_mhz=1500, fan_pct=40, own=True),)
        ),
        host=HostSample(t=999, net_sent=3e6, cpu_pct=50.0, disk_free_bytes=7e10),
        metrics=MetricValues(t=999, values={'val "loss"\\\n': 2.0}),
    ),
    run_now("other-2", life=SupervisorLife()),
)


def test_values_have_the_base_units_and_the_labels_run_and_gpu() -> None:
    lines = page(*FULL).splitlines()
    for line in (
        'trainwatch_gpu_utilization_ratio{run="luca-1",gpu="1"} 0.97',
        'trainwatch_gpu_memory_used_bytes{run="luca-1",gpu="1"} 5000000000',
        'trainwatch_gpu_clock_hertz{run="luca-1",gpu="1"} 1500000000',
        'trainwatch_host_cpu_utilization_ratio{run="luca-1"} 0.5',
        'trainwatch_gpu_fan_ratio{run="luca-1",gpu="1"} 0.4',
        'trainwatch_host_network_transmit_bytes_per_second{run="luca-1"} 3000000',
        'trainwatch_step_duration_seconds{run="luca-1"} 0.5',
        'trainwatch_learning_rate{run="luca-1"} 1e-05',
        'trainwatch_supervisor_up{run="luca-1"} 1',
        'trainwatch_supervisor_up{run="other-2"} 0',
        'trainwatch_run_state{run="luca-1",state="running"} 1',
        'trainwatch_run_state{run="luca-1",state="hung"} 0',
        r'trainwatch_trainer_metric{run="luca-1",metric="val \"loss\"\\\n"} 2',
    ):
        assert line in lines


def test_the_count_of_steps_does_not_fall_when_a_run_goes_back_to_a_checkpoint() -> None:
    lines = page(*FULL).splitlines()
    assert 'trainwatch_step_total{run="luca-1"} 120' in lines
    assert 'trainwatch_current_step{run="luca-1"} 90' in lines
    ahead = page(run_now(progress=Progress(step=130), highest_step=120.0))
    assert 'trainwatch_step_total{run="luca-1"} 130' in ahead.splitlines()


def test_what_is_unknown_has_no_line() -> None:
    text = page(run_now())
    for name in ("step_total", "loss", "gpu_", "host_", "checkpoint_step", "remaining_seconds", "last_step"):
        assert f"trainwatch_{name}" not in text
    assert "None" not in text
    assert exposition([Metric("a", "gauge", "A.")], [Sample("a", float("nan"), {})]) == ""


def test_scores_of_checkpoints_are_told_by_their_metric_and_not_twice() -> None:
    now = run_now(metrics=MetricValues(t=999, values={"evaluate/fid": 9.0, "evaluate/mine": 1.0}))
    now.status["checkpoints"]["scores"] = [
        {
            "path": "a",
            "step": 20,
            "metric": "fid",
            "score": 7.0,
            "values": {"fid": 7.0, "clip_score": 0.3},
            "why": None,
        },
        {"path": "b", "step": 40, "metric": "fid", "score": 9.0, "values": {"fid": 9.0}, "why": None},
        {"path": "c", "step": 60, "metric": "fid", "score": None, "values": {}, "why": "it failed"},
    ]
    now.status["checkpoints"]["best"] = now.status["checkpoints"]["scores"][0]
    lines = page(now).splitlines()
    for line in (
        'trainwatch_checkpoint_score{run="luca-1",metric="fid"} 9',
        'trainwatch_checkpoint_score{run="luca-1",metric="clip_score"} 0.3',
        'trainwatch_best_checkpoint_score{run="luca-1",metric="fid"} 7',
        'trainwatch_best_checkpoint_step{run="luca-1",metric="fid"} 20',
        'trainwatch_trainer_metric{run="luca-1",metric="evaluate/mine"} 1',
    ):
        assert line in lines
    assert "evaluate/fid" not in page(now)


def test_each_metric_stands_once_with_its_text_and_its_type() -> None:
    text = page(*FULL)
    named = re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE)
    assert len(named) == len({name for name, _ in named})
    assert all((kind == "counter") == name.endswith("_total") for name, kind in named)
    lines = [line.rpartition(" ")[0] for line in text.splitlines() if not line.startswith("#")]
    assert len(lines) == len(set(lines))


def test_the_dashboard_and_the_examples_ask_for_metrics_and_labels_that_there_are() -> None:
    labels: dict[str, set[str]] = {}
    for name, words in re.findall(r"^(\w+)\{(.*?)\} ", page(*FULL), re.MULTILINE):
        labels.setdefault(name, set()).update(re.findall(r"(\w+)=", words))
    docs = Path(__file__).parents[2] / "docs"
    panels = json.loads((docs / "grafana-dashboard.json").read_text())["panels"]
    shown = [(t["expr"], t["legendFormat"]) for panel in panels for t in panel["targets"]]
    assert len(shown) >= 17
    named = {metric.name for metric in METRICS}
    for expression, legend in shown:
        (name,) = re.findall(r"trainwatch_\w+", expression)
        assert name in named
        assert name not in labels or {*re.findall(r"\{\{(\w+)\}\}", legend)} <= labels[name]
    text = (docs / "how-to" / "watch.md").read_text()
    assert {*re.findall(r"trainwatch_[a-z_]+", text)} <= named


@pytest.mark.skipif(
    shutil.which("promtool") is None, reason="promtool is not installed (Debian: apt install prometheus)"
)
def test_promtool_accepts_the_page() -> None:
    done = subprocess.run(
        ["promtool", "check", "metrics"], input=page(*FULL), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
