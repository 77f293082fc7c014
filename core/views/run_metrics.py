"""What of a run is told to other programs: names, units, texts and values."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, get_args

import msgspec

from ..model.checkpoint import SERIES
from ..model.observation import GpuReading, GpuSample, HostSample, MetricValues, ProcessSample
from ..model.run import LIVE_STATES, RunState
from .metrics import Metric, Sample

BUILD = "trainwatch_build_info"
UNREADABLE = "trainwatch_unreadable_runs"
METRICS = (
    Metric(BUILD, "gauge", "The version of trainwatch; always 1."),
    Metric(UNREADABLE, "gauge", "Runs whose files cannot be read, and which are not on this page."),
    Metric("trainwatch_run_info", "gauge", "A run; always 1. Its labels are the name and the preset of the run."),
    Metric("trainwatch_run_state", "gauge", "1 for the state of the run as last known, 0 for the others."),
    Metric("trainwatch_supervisor_up", "gauge", "1 if a supervisor watches the run and responds."),
    Metric("trainwatch_attempts_total", "counter", "Launches of the trainer."),
    Metric("trainwatch_step_total", "counter", "Highest step that the run has reached."),
    Metric("trainwatch_current_step", "gauge", "Newest step; falls when the run goes back to a checkpoint."),
    Metric("trainwatch_planned_steps", "gauge", "Steps of the whole run."),
    Metric("trainwatch_epoch", "gauge", "Epoch, as the trainer prints it."),
    Metric("trainwatch_loss", "gauge", "Newest loss that the trainer printed."),
    Metric("trainwatch_learning_rate", "gauge", "Newest learning rate that the trainer printed."),
    Metric("trainwatch_step_duration_seconds", "gauge", "Seconds per step."),
    Metric("trainwatch_remaining_seconds", "gauge", "Estimated time until the run is done."),
    Metric("trainwatch_last_step_timestamp_seconds", "gauge", "When the newest step was seen, Unix time."),
    Metric("trainwatch_trainer_metric", "gauge", "Newest number that the trainer logged by this name."),
    Metric("trainwatch_checkpoints", "gauge", "Known checkpoints."),
    Metric("trainwatch_checkpoint_step", "gauge", "Step of the newest checkpoint."),
    Metric("trainwatch_checkpoint_timestamp_seconds", "gauge", "When the newest checkpoint was written, Unix time."),
    Metric("trainwatch_checkpoint_score", "gauge", "Newest known value of each metric that [evaluate] measures."),
    Metric("trainwatch_best_checkpoint_score", "gauge", "Score of the best checkpoint that is there."),
    Metric("trainwatch_best_checkpoint_step", "gauge", "Step of the best checkpoint that is there."),
    Metric("trainwatch_incidents_total", "counter", "Incidents by kind."),
    Metric("trainwatch_open_incidents", "gauge", "Incidents that are not over."),
    Metric("trainwatch_troubles", "gauge", "What is wrong now, by level."),
    Metric("trainwatch_restarts_used", "gauge", "Automatic restarts that count against the budget."),
    Metric("trainwatch_restarts_allowed", "gauge", "Automatic restarts in the budget."),
    Metric("trainwatch_effective_training_time_ratio", "gauge", "Time in which new steps were made over wall time."),
    Metric("trainwatch_gpu_utilization_ratio", "gauge", "GPU utilization."),
    Metric("trainwatch_gpu_memory_used_bytes", "gauge", "GPU memory in use."),
    Metric("trainwatch_gpu_memory_size_bytes", "gauge", "GPU memory there is."),
    Metric("trainwatch_gpu_temperature_celsius", "gauge", "GPU temperature."),
    Metric("trainwatch_gpu_power_watts", "gauge", "Power that the GPU draws."),
    Metric("trainwatch_gpu_power_limit_watts", "gauge", "Power limit of the GPU."),
    Metric("trainwatch_gpu_clock_hertz", "gauge", "Clock of the GPU's processors."),
    Metric("trainwatch_gpu_memory_clock_hertz", "gauge", "Clock of the GPU's memory."),
    Metric("trainwatch_gpu_fan_ratio", "gauge", "Speed of the GPU's fan, of its full speed."),
    Metric("trainwatch_gpu_used_by_run", "gauge", "1 if the trainer of the run uses this GPU, 0 if it does not."),
    Metric("trainwatch_host_memory_used_bytes", "gauge", "Memory in use, of the machine or of the run's cgroup."),
    Metric("trainwatch_host_memory_available_bytes", "gauge", "Memory that can still be used."),
    Metric("trainwatch_host_memory_size_bytes", "gauge", "Memory there is."),
    Metric("trainwatch_host_swap_used_bytes", "gauge", "Swap in use."),
    Metric("trainwatch_host_disk_free_bytes", "gauge", "Free space on the disk that the run saves to."),
    Metric("trainwatch_host_disk_size_bytes", "gauge", "Size of the disk that the run saves to."),
    Metric("trainwatch_host_cpu_utilization_ratio", "gauge", "Use of the processors."),
    Metric("trainwatch_host_memory_pressure_ratio", "gauge", "Share of 10 s in which some task waited for memory."),
    Metric("trainwatch_host_disk_read_bytes_per_second", "gauge", "What all disks read."),
    Metric("trainwatch_host_disk_written_bytes_per_second", "gauge", "What is written to all disks."),
    Metric("trainwatch_host_network_receive_bytes_per_second", "gauge", "What the networks receive."),
    Metric("trainwatch_host_network_transmit_bytes_per_second", "gauge", "What is sent to the networks."),
    Metric("trainwatch_process_resident_memory_bytes", "gauge", "Memory of the trainer's process tree."),
    Metric("trainwatch_processes", "gauge", "Processes of the trainer."),
    Metric("trainwatch_process_cpu_cores", "gauge", "Processor cores that the trainer keeps busy."),
)  # fmt: skip
"""Every metric there is. Names and units: https://prometheus.io/docs/practices/naming/."""
LEVELS = ("danger", "warning", "info")


class RunNow(msgspec.Struct, frozen=True, kw_only=True):
    """A run as it is now. ``status``: its object of ``status --json``; ``highest_step``: of its whole history.

    Samples are None if they are missing or too old to be of now.
    """

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
    yield from _state(now, run)
    yield from _progress(now, run)
    yield from _checkpoints(now, run)
    yield from _trouble(now, run)
    if now.gpu is not None:
        for reading in now.gpu.gpus:
            yield from _gpu(reading, {**run, "gpu": str(reading.index)})
    if now.host is not None:
        yield from _host(now.host, run)
    if now.process is not None:
        yield Sample("trainwatch_process_resident_memory_bytes", now.process.rss_bytes, run)
        yield Sample("trainwatch_processes", now.process.procs, run)
        yield Sample("trainwatch_process_cpu_cores", now.process.cpu_cores, run)


def _state(now: RunNow, run: Mapping[str, str]) -> Iterator[Sample]:
    status = now.status
    yield Sample("trainwatch_run_info", 1, {**run, "name": str(status["run"]), "preset": now.preset})
    for state in get_args(RunState):
        yield Sample("trainwatch_run_state", float(state == status["state"]), {**run, "state": state})
    supervisor = status["supervisor"]
    yield Sample("trainwatch_supervisor_up", float(supervisor["alive"] and supervisor["responsive"]), run)
    yield Sample("trainwatch_attempts_total", status["attempt"], run)
    yield Sample("trainwatch_restarts_used", status["budget"]["used"], run)
    yield Sample("trainwatch_restarts_allowed", status["budget"]["max"], run)
    yield Sample("trainwatch_effective_training_time_ratio", status["ettr"], run)


def _progress(now: RunNow, run: Mapping[str, str]) -> Iterator[Sample]:
    progress, overall = now.status["progress"], now.status["overall"]
    step: float | None = overall["step"]
    known = [value for value in (step, now.highest_step) if value is not None]
    yield Sample("trainwatch_step_total", max(known, default=None), run)
    yield Sample("trainwatch_current_step", step, run)
    yield Sample("trainwatch_planned_steps", overall["total_steps"], run)
    yield Sample("trainwatch_epoch", progress["epoch"], run)
    yield Sample("trainwatch_loss", progress["loss"], run)
    yield Sample("trainwatch_learning_rate", progress["lr"], run)
    if now.status["state"] in LIVE_STATES:
        yield Sample("trainwatch_step_duration_seconds", progress["sec_per_step"], run)
        yield Sample("trainwatch_remaining_seconds", progress["eta_s"], run)
    age_s = now.status["last_step_age_s"]
    yield Sample("trainwatch_last_step_timestamp_seconds", None if age_s is None else round(now.wall - age_s, 3), run)
    measured = {f"{SERIES}{name}" for name in _scores(now)}
    for name, value in now.metrics.values.items() if now.metrics is not None else ():
        if name not in measured:
            yield Sample("trainwatch_trainer_metric", value, {**run, "metric": name})


def _checkpoints(now: RunNow, run: Mapping[str, str]) -> Iterator[Sample]:
    checkpoints = now.status["checkpoints"]
    newest = checkpoints["newest"] or {}
    yield Sample("trainwatch_checkpoints", checkpoints["count"], run)
    yield Sample("trainwatch_checkpoint_step", newest.get("step"), run)
    yield Sample("trainwatch_checkpoint_timestamp_seconds", newest.get("mtime"), run)
    for name, value in _scores(now).items():
        yield Sample("trainwatch_checkpoint_score", value, {**run, "metric": name})
    best = checkpoints["best"]
    if best is not None:
        metric = best["metric"] or "score"
        yield Sample("trainwatch_best_checkpoint_score", best["score"], {**run, "metric": metric})
        yield Sample("trainwatch_best_checkpoint_step", best["step"], {**run, "metric": metric})


def _scores(now: RunNow) -> dict[str, float]:
    """The newest known value of each metric that ``[evaluate]`` measured."""
    found: dict[str, float] = {}
    for each in now.status["checkpoints"]["scores"]:
        if each["score"] is not None:
            found |= each["values"] or {each["metric"] or "score": each["score"]}
    return found


def _trouble(now: RunNow, run: Mapping[str, str]) -> Iterator[Sample]:
    incidents = now.status["incidents"]
    for kind, count in sorted(Counter(incident["kind"] for incident in incidents).items()):
        yield Sample("trainwatch_incidents_total", count, {**run, "kind": kind})
    yield Sample("trainwatch_open_incidents", sum(bool(incident["open"]) for incident in incidents), run)
    levels = Counter(trouble["level"] for trouble in now.status["troubles"])
    for level in LEVELS:
        yield Sample("trainwatch_troubles", levels[level], {**run, "level": level})


def _gpu(reading: GpuReading, labels: Mapping[str, str]) -> Iterator[Sample]:
    yield Sample("trainwatch_gpu_utilization_ratio", _ratio(reading.util_pct), labels)
    yield Sample("trainwatch_gpu_memory_used_bytes", reading.mem_used_bytes, labels)
    yield Sample("trainwatch_gpu_memory_size_bytes", reading.mem_total_bytes, labels)
    yield Sample("trainwatch_gpu_temperature_celsius", reading.temp_c, labels)
    yield Sample("trainwatch_gpu_power_watts", reading.power_w, labels)
    yield Sample("trainwatch_gpu_power_limit_watts", reading.power_limit_w, labels)
    yield Sample("trainwatch_gpu_clock_hertz", _hertz(reading.clock_mhz), labels)
    yield Sample("trainwatch_gpu_memory_clock_hertz", _hertz(reading.clock_mem_mhz), labels)
    yield Sample("trainwatch_gpu_fan_ratio", _ratio(reading.fan_pct), labels)
    yield Sample("trainwatch_gpu_used_by_run", None if reading.own is None else float(reading.own), labels)


def _host(host: HostSample, run: Mapping[str, str]) -> Iterator[Sample]:
    yield Sample("trainwatch_host_memory_used_bytes", host.ram_used_bytes, run)
    yield Sample("trainwatch_host_memory_available_bytes", host.ram_available_bytes, run)
    yield Sample("trainwatch_host_memory_size_bytes", host.ram_total_bytes, run)
    yield Sample("trainwatch_host_swap_used_bytes", host.swap_used_bytes, run)
    yield Sample("trainwatch_host_disk_free_bytes", host.disk_free_bytes, run)
    yield Sample("trainwatch_host_disk_size_bytes", host.disk_total_bytes, run)
    yield Sample("trainwatch_host_cpu_utilization_ratio", _ratio(host.cpu_pct), run)
    yield Sample("trainwatch_host_memory_pressure_ratio", _ratio(host.psi_memory_pct), run)
    yield Sample("trainwatch_host_disk_read_bytes_per_second", host.disk_read, run)
    yield Sample("trainwatch_host_disk_written_bytes_per_second", host.disk_written, run)
    yield Sample("trainwatch_host_network_receive_bytes_per_second", host.net_received, run)
    yield Sample("trainwatch_host_network_transmit_bytes_per_second", host.net_sent, run)


def _hertz(mhz: float | None) -> float | None:
    return None if mhz is None else mhz * 1e6


def _ratio(percent: float | None) -> float | None:
    return None if percent is None else percent / 100
