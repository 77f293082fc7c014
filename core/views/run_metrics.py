"""What of a run is told to other programs: names, units, texts and values."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, get_args

import msgspec

from ..model.checkpoint import SERIES
from ..model.observation import GpuSample, HostSample, MetricValues, ProcessSample
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


def _of(
    things: Callable[[RunNow], Iterable[Any]], label: Callable[[Any], dict[str, str]] = lambda _: {}
) -> Callable[[Callable[[Any], float | None]], Values]:
    """Makes the values of a metric of its value of each thing; what is not there has none."""
    return lambda value: lambda now: [(value(each), label(each)) for each in things(now) if each is not None]


_of_run, _of_host, _of_process = _of(lambda n: [n]), _of(lambda n: [n.host]), _of(lambda n: [n.process])
_of_gpus = _of(lambda n: n.gpu.gpus if n.gpu is not None else (), lambda g: {"gpu": str(g.index)})


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


def _hertz(mhz: float | None) -> float | None:
    return None if mhz is None else mhz * 1e6


def _ratio(percent: float | None) -> float | None:
    return None if percent is None else percent / 100


def _each(
    values: Callable[[Callable[[Any], float | None]], Values], *rows: tuple[str, str, Callable[[Any], float | None]]
) -> Iterator[Metric]:
    """A metric for each (name, help, value)."""
    return (_labelled(name, words, values(value)) for name, words, value in rows)


def _labelled(name: str, words: str, values: Values) -> Metric:
    """A counter's name ends with ``_total``."""
    return Metric(f"trainwatch_{name}", "counter" if name.endswith("_total") else "gauge", words, values)


METRICS: tuple[Metric, ...] = (
    Metric(BUILD, "gauge", "The version of trainwatch; always 1."),
    Metric(UNREADABLE, "gauge", "Runs whose files cannot be read, and which are not on this page."),
    _labelled(
        "run_info", "A run; always 1. Its labels are the name and the preset of the run.",
        lambda n: [(1, {"name": str(n.status["run"]), "preset": n.preset})],
    ),
    _labelled(
        "run_state", "1 for the state of the run as last known, 0 for the others.",
        lambda n: [(float(state == n.said.state), {"state": state}) for state in get_args(RunState)],
    ),
    *_each(
        _of_run,
        ("supervisor_up", "1 if a supervisor watches the run and responds.",
         lambda n: float(n.status["supervisor"]["alive"] and n.status["supervisor"]["responsive"])),
        ("attempts_total", "Launches of the trainer.", lambda n: n.status["attempt"]),
        ("step_total", "Highest step that the run has reached.",
         lambda n: max((v for v in (n.said.position.step, n.highest_step) if v is not None), default=None)),
        ("current_step", "Newest step; falls when the run goes back to a checkpoint.", lambda n: n.said.position.step),
        ("planned_steps", "Steps of the whole run.", lambda n: n.said.position.total_steps),
        ("epoch", "Epoch, as the trainer prints it.", lambda n: n.status["progress"]["epoch"]),
        ("loss", "Newest loss that the trainer printed.", lambda n: n.said.loss),
        ("learning_rate", "Newest learning rate that the trainer printed.", lambda n: n.status["progress"]["lr"]),
        ("step_duration_seconds", "Seconds per step.",
         lambda n: n.said.position.sec_per_step if n.said.state in LIVE_STATES else None),
        ("remaining_seconds", "Estimated time until the run is done.", lambda n: n.said.position.eta_s),
        ("last_step_timestamp_seconds", "When the newest step was seen, Unix time.",
         lambda n: None if (age_s := n.status["last_step_age_s"]) is None else round(n.wall - age_s, 3)),
    ),
    _labelled("trainer_metric", "Newest number that the trainer logged by this name.", _trainer_metrics),
    *_each(
        _of_run,
        ("checkpoints", "Known checkpoints.", lambda n: n.said.checkpoints),
        ("checkpoint_step", "Step of the newest checkpoint.", lambda n: _newest(n).get("step")),
        ("checkpoint_timestamp_seconds", "When the newest checkpoint was written, Unix time.",
         lambda n: _newest(n).get("mtime")),
    ),
    _labelled(
        "checkpoint_score", "Newest known value of each metric that [evaluate] measures.",
        lambda n: [(value, {"metric": name}) for name, value in _scores(n).items()],
    ),
    _labelled("best_checkpoint_score", "Score of the best checkpoint that is there.", lambda n: _best(n, "score")),
    _labelled("best_checkpoint_step", "Step of the best checkpoint that is there.", lambda n: _best(n, "step")),
    _labelled(
        "incidents_total", "Incidents by kind.",
        lambda n: _counted(Counter(i["kind"] for i in n.status["incidents"]), "kind"),
    ),
    *_each(
        _of_run,
        ("open_incidents", "Incidents that are not over.", lambda n: sum(i["open"] for i in n.status["incidents"])),
    ),
    _labelled(
        "troubles", "What is wrong now, by level.",
        lambda n: _counted({each: sum(t["level"] == each for t in n.status["troubles"]) for each in LEVELS}, "level"),
    ),
    *_each(
        _of_run,
        ("restarts_used", "Automatic restarts that count against the budget.", lambda n: n.said.restarts[0]),
        ("restarts_allowed", "Automatic restarts in the budget.", lambda n: n.said.restarts[1]),
        ("effective_training_time_ratio", "Time in which new steps were made over wall time.",
         lambda n: n.status["ettr"]),
    ),
    *_each(
        _of_gpus,
        ("gpu_utilization_ratio", "GPU utilization.", lambda g: _ratio(g.util_pct)),
        ("gpu_memory_used_bytes", "GPU memory in use.", lambda g: g.mem_used_bytes),
        ("gpu_memory_size_bytes", "GPU memory there is.", lambda g: g.mem_total_bytes),
        ("gpu_temperature_celsius", "GPU temperature.", lambda g: g.temp_c),
        ("gpu_power_watts", "Power that the GPU draws.", lambda g: g.power_w),
        ("gpu_power_limit_watts", "Power limit of the GPU.", lambda g: g.power_limit_w),
        ("gpu_clock_hertz", "Clock of the GPU's processors.", lambda g: _hertz(g.clock_mhz)),
        ("gpu_memory_clock_hertz", "Clock of the GPU's memory.", lambda g: _hertz(g.clock_mem_mhz)),
        ("gpu_fan_ratio", "Speed of the GPU's fan, of its full speed.", lambda g: _ratio(g.fan_pct)),
        ("gpu_used_by_run", "1 if the trainer of the run uses this GPU, 0 if it does not.",
         lambda g: None if g.own is None else float(g.own)),
    ),
    *_each(
        _of_host,
        ("host_memory_used_bytes", "Memory in use, of the machine or of the run's cgroup.", lambda h: h.ram_used_bytes),
        ("host_memory_available_bytes", "Memory that can still be used.", lambda h: h.ram_available_bytes),
        ("host_memory_size_bytes", "Memory there is.", lambda h: h.ram_total_bytes),
        ("host_swap_used_bytes", "Swap in use.", lambda h: h.swap_used_bytes),
        ("host_disk_free_bytes", "Free space on the disk that the run saves to.", lambda h: h.disk_free_bytes),
        ("host_disk_size_bytes", "Size of the disk that the run saves to.", lambda h: h.disk_total_bytes),
        ("host_cpu_utilization_ratio", "Use of the processors.", lambda h: _ratio(h.cpu_pct)),
        ("host_memory_pressure_ratio", "Share of 10 s in which some task waited for memory.",
         lambda h: _ratio(h.psi_memory_pct)),
        ("host_disk_read_bytes_per_second", "What all disks read.", lambda h: h.disk_read),
        ("host_disk_written_bytes_per_second", "What is written to all disks.", lambda h: h.disk_written),
        ("host_network_receive_bytes_per_second", "What the networks receive.", lambda h: h.net_received),
        ("host_network_transmit_bytes_per_second", "What is sent to the networks.", lambda h: h.net_sent),
    ),
    *_each(
        _of_process,
        ("process_resident_memory_bytes", "Memory of the trainer's process tree.", lambda p: p.rss_bytes),
        ("processes", "Processes of the trainer.", lambda p: p.procs),
        ("process_cpu_cores", "Processor cores that the trainer keeps busy.", lambda p: p.cpu_cores),
    ),
)  # fmt: skip
"""Every metric there is. Names and units: https://prometheus.io/docs/practices/naming/."""
