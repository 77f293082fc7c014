"""What of a run is told to other programs: names, units, texts and values."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, get_args

import msgspec

from ..model.checkpoint import SERIES
from ..model.observation import GpuReading, GpuSample, HostSample, MetricValues, ProcessSample
from ..model.run import LIVE_STATES, RunState
from .metrics import Metric, Sample, Values
from .run_summary import RunSummary

BUILD = "trainwatch_build_info"
UNREADABLE = "trainwatch_unreadable_runs"
LEVELS = ("danger", "warning", "info")


class RunNow(msgspec.Struct, frozen=True, kw_only=True):
    """A run as it is now. ``status``: its object of ``status --json``; ``highest_step``: of its whole history.

    Samples are None if they are missing or too old to be of now.
    """

    said: RunSummary
    status: Mapping[str, Any]
    wall: float
    preset: str = ""
    highest_step: float | None = None
    gpu: GpuSample | None = None
    host: HostSample | None = None
    process: ProcessSample | None = None
    metrics: MetricValues | None = None


def run_samples(now: RunNow) -> Iterator[Sample]:
    """All values of one run, under the label ``run`` with its id."""
    run = {"run": str(now.status["id"])}
    return (Sample(metric.name, value, {**run, **more}) for metric in METRICS for value, more in metric.values(now))


def _of_run(value: Callable[[RunNow], float | None]) -> Values:
    return lambda now: [(value(now), {})]


def _of_gpus(value: Callable[[GpuReading], float | None]) -> Values:
    return lambda now: [(value(g), {"gpu": str(g.index)}) for g in (now.gpu.gpus if now.gpu is not None else ())]


def _of_host(value: Callable[[HostSample], float | None]) -> Values:
    return lambda now: [] if now.host is None else [(value(now.host), {})]


def _of_process(value: Callable[[ProcessSample], float | None]) -> Values:
    return lambda now: [] if now.process is None else [(value(now.process), {})]


def _counted(counts: Mapping[str, int], label: str) -> Iterable[tuple[float, dict[str, str]]]:
    return [(count, {label: name}) for name, count in sorted(counts.items())]


def _trainer_metrics(now: RunNow) -> Iterator[tuple[float, dict[str, str]]]:
    """Without those that ``[evaluate]`` measured."""
    measured = {f"{SERIES}{name}" for name in _scores(now)}
    for name, value in now.metrics.values.items() if now.metrics is not None else ():
        if name not in measured:
            yield value, {"metric": name}


def _newest(now: RunNow) -> Mapping[str, Any]:
    return now.status["checkpoints"]["newest"] or {}


def _best(now: RunNow, field: str) -> Iterator[tuple[float | None, dict[str, str]]]:
    best = now.status["checkpoints"]["best"]
    if best is not None:
        yield best[field], {"metric": best["metric"] or "score"}


def _scores(now: RunNow) -> dict[str, float]:
    """The newest known value of each metric that ``[evaluate]`` measured."""
    found: dict[str, float] = {}
    for each in now.status["checkpoints"]["scores"]:
        if each["score"] is not None:
            found |= each["values"] or {each["metric"] or "score": each["score"]}
    return found


def _ago(wall: float, age_s: float | None) -> float | None:
    return None if age_s is None else round(wall - age_s, 3)


def _hertz(mhz: float | None) -> float | None:
    return None if mhz is None else mhz * 1e6


def _ratio(percent: float | None) -> float | None:
    return None if percent is None else percent / 100


METRICS: tuple[Metric, ...] = (
    Metric(BUILD, "gauge", "The version of trainwatch; always 1."),
    Metric(UNREADABLE, "gauge", "Runs whose files cannot be read, and which are not on this page."),
    Metric(
        "trainwatch_run_info",
        "gauge",
        "A run; always 1. Its labels are the name and the preset of the run.",
        lambda n: [(1, {"name": str(n.status["run"]), "preset": n.preset})],
    ),
    Metric(
        "trainwatch_run_state",
        "gauge",
        "1 for the state of the run as last known, 0 for the others.",
        lambda n: [(float(state == n.said.state), {"state": state}) for state in get_args(RunState)],
    ),
    Metric(
        "trainwatch_supervisor_up",
        "gauge",
        "1 if a supervisor watches the run and responds.",
        _of_run(lambda n: float(n.status["supervisor"]["alive"] and n.status["supervisor"]["responsive"])),
    ),
    Metric("trainwatch_attempts_total", "counter", "Launches of the trainer.", _of_run(lambda n: n.status["attempt"])),
    Metric(
        "trainwatch_step_total",
        "counter",
        "Highest step that the run has reached.",
        _of_run(lambda n: max((v for v in (n.said.position.step, n.highest_step) if v is not None), default=None)),
    ),
    Metric(
        "trainwatch_current_step",
        "gauge",
        "Newest step; falls when the run goes back to a checkpoint.",
        _of_run(lambda n: n.said.position.step),
    ),
    Metric(
        "trainwatch_planned_steps", "gauge", "Steps of the whole run.", _of_run(lambda n: n.said.position.total_steps)
    ),
    Metric(
        "trainwatch_epoch",
        "gauge",
        "Epoch, as the trainer prints it.",
        _of_run(lambda n: n.status["progress"]["epoch"]),
    ),
    Metric("trainwatch_loss", "gauge", "Newest loss that the trainer printed.", _of_run(lambda n: n.said.loss)),
    Metric(
        "trainwatch_learning_rate",
        "gauge",
        "Newest learning rate that the trainer printed.",
        _of_run(lambda n: n.status["progress"]["lr"]),
    ),
    Metric(
        "trainwatch_step_duration_seconds",
        "gauge",
        "Seconds per step.",
        _of_run(lambda n: n.said.position.sec_per_step if n.said.state in LIVE_STATES else None),
    ),
    Metric(
        "trainwatch_remaining_seconds",
        "gauge",
        "Estimated time until the run is done.",
        _of_run(lambda n: n.said.position.eta_s),
    ),
    Metric(
        "trainwatch_last_step_timestamp_seconds",
        "gauge",
        "When the newest step was seen, Unix time.",
        _of_run(lambda n: _ago(n.wall, n.status["last_step_age_s"])),
    ),
    Metric(
        "trainwatch_trainer_metric",
        "gauge",
        "Newest number that the trainer logged by this name.",
        _trainer_metrics,
    ),
    Metric("trainwatch_checkpoints", "gauge", "Known checkpoints.", _of_run(lambda n: n.said.checkpoints)),
    Metric(
        "trainwatch_checkpoint_step",
        "gauge",
        "Step of the newest checkpoint.",
        _of_run(lambda n: _newest(n).get("step")),
    ),
    Metric(
        "trainwatch_checkpoint_timestamp_seconds",
        "gauge",
        "When the newest checkpoint was written, Unix time.",
        _of_run(lambda n: _newest(n).get("mtime")),
    ),
    Metric(
        "trainwatch_checkpoint_score",
        "gauge",
        "Newest known value of each metric that [evaluate] measures.",
        lambda n: [(value, {"metric": name}) for name, value in _scores(n).items()],
    ),
    Metric(
        "trainwatch_best_checkpoint_score",
        "gauge",
        "Score of the best checkpoint that is there.",
        lambda n: _best(n, "score"),
    ),
    Metric(
        "trainwatch_best_checkpoint_step",
        "gauge",
        "Step of the best checkpoint that is there.",
        lambda n: _best(n, "step"),
    ),
    Metric(
        "trainwatch_incidents_total",
        "counter",
        "Incidents by kind.",
        lambda n: _counted(Counter(i["kind"] for i in n.status["incidents"]), "kind"),
    ),
    Metric(
        "trainwatch_open_incidents",
        "gauge",
        "Incidents that are not over.",
        _of_run(lambda n: sum(bool(i["open"]) for i in n.status["incidents"])),
    ),
    Metric(
        "trainwatch_troubles",
        "gauge",
        "What is wrong now, by level.",
        lambda n: _counted(
            {level: sum(t["level"] == level for t in n.status["troubles"]) for level in LEVELS}, "level"
        ),
    ),
    Metric(
        "trainwatch_restarts_used",
        "gauge",
        "Automatic restarts that count against the budget.",
        _of_run(lambda n: n.said.restarts[0]),
    ),
    Metric(
        "trainwatch_restarts_allowed",
        "gauge",
        "Automatic restarts in the budget.",
        _of_run(lambda n: n.said.restarts[1]),
    ),
    Metric(
        "trainwatch_effective_training_time_ratio",
        "gauge",
        "Time in which new steps were made over wall time.",
        _of_run(lambda n: n.status["ettr"]),
    ),
    Metric("trainwatch_gpu_utilization_ratio", "gauge", "GPU utilization.", _of_gpus(lambda g: _ratio(g.util_pct))),
    Metric("trainwatch_gpu_memory_used_bytes", "gauge", "GPU memory in use.", _of_gpus(lambda g: g.mem_used_bytes)),
    Metric("trainwatch_gpu_memory_size_bytes", "gauge", "GPU memory there is.", _of_gpus(lambda g: g.mem_total_bytes)),
    Metric("trainwatch_gpu_temperature_celsius", "gauge", "GPU temperature.", _of_gpus(lambda g: g.temp_c)),
    Metric("trainwatch_gpu_power_watts", "gauge", "Power that the GPU draws.", _of_gpus(lambda g: g.power_w)),
    Metric("trainwatch_gpu_power_limit_watts", "gauge", "Power limit of the GPU.", _of_gpus(lambda g: g.power_limit_w)),
    Metric(
        "trainwatch_gpu_clock_hertz", "gauge", "Clock of the GPU's processors.", _of_gpus(lambda g: _hertz(g.clock_mhz))
    ),
    Metric(
        "trainwatch_gpu_memory_clock_hertz",
        "gauge",
        "Clock of the GPU's memory.",
        _of_gpus(lambda g: _hertz(g.clock_mem_mhz)),
    ),
    Metric(
        "trainwatch_gpu_fan_ratio",
        "gauge",
        "Speed of the GPU's fan, of its full speed.",
        _of_gpus(lambda g: _ratio(g.fan_pct)),
    ),
    Metric(
        "trainwatch_gpu_used_by_run",
        "gauge",
        "1 if the trainer of the run uses this GPU, 0 if it does not.",
        _of_gpus(lambda g: None if g.own is None else float(g.own)),
    ),
    Metric(
        "trainwatch_host_memory_used_bytes",
        "gauge",
        "Memory in use, of the machine or of the run's cgroup.",
        _of_host(lambda h: h.ram_used_bytes),
    ),
    Metric(
        "trainwatch_host_memory_available_bytes",
        "gauge",
        "Memory that can still be used.",
        _of_host(lambda h: h.ram_available_bytes),
    ),
    Metric("trainwatch_host_memory_size_bytes", "gauge", "Memory there is.", _of_host(lambda h: h.ram_total_bytes)),
    Metric("trainwatch_host_swap_used_bytes", "gauge", "Swap in use.", _of_host(lambda h: h.swap_used_bytes)),
    Metric(
        "trainwatch_host_disk_free_bytes",
        "gauge",
        "Free space on the disk that the run saves to.",
        _of_host(lambda h: h.disk_free_bytes),
    ),
    Metric(
        "trainwatch_host_disk_size_bytes",
        "gauge",
        "Size of the disk that the run saves to.",
        _of_host(lambda h: h.disk_total_bytes),
    ),
    Metric(
        "trainwatch_host_cpu_utilization_ratio",
        "gauge",
        "Use of the processors.",
        _of_host(lambda h: _ratio(h.cpu_pct)),
    ),
    Metric(
        "trainwatch_host_memory_pressure_ratio",
        "gauge",
        "Share of 10 s in which some task waited for memory.",
        _of_host(lambda h: _ratio(h.psi_memory_pct)),
    ),
    Metric(
        "trainwatch_host_disk_read_bytes_per_second", "gauge", "What all disks read.", _of_host(lambda h: h.disk_read)
    ),
    Metric(
        "trainwatch_host_disk_written_bytes_per_second",
        "gauge",
        "What is written to all disks.",
        _of_host(lambda h: h.disk_written),
    ),
    Metric(
        "trainwatch_host_network_receive_bytes_per_second",
        "gauge",
        "What the networks receive.",
        _of_host(lambda h: h.net_received),
    ),
    Metric(
        "trainwatch_host_network_transmit_bytes_per_second",
        "gauge",
        "What is sent to the networks.",
        _of_host(lambda h: h.net_sent),
    ),
    Metric(
        "trainwatch_process_resident_memory_bytes",
        "gauge",
        "Memory of the trainer's process tree.",
        _of_process(lambda p: p.rss_bytes),
    ),
    Metric("trainwatch_processes", "gauge", "Processes of the trainer.", _of_process(lambda p: p.procs)),
    Metric(
        "trainwatch_process_cpu_cores",
        "gauge",
        "Processor cores that the trainer keeps busy.",
        _of_process(lambda p: p.cpu_cores),
    ),
)
"""Every metric there is. Names and units: https://prometheus.io/docs/practices/naming/."""
