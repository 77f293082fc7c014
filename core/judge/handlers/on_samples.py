"""Samples of GPUs, host and process tree: signs of life, health levels, disk space and a stopped trainer."""

import re

import msgspec

from ...model.fact import HealthChanged
from ...model.incident import IncidentKind
from ...model.observation import GpuSample, HostSample, ProcessSample, TerminationNotice
from ...model.text.health_words import reading_name
from ..failure.lost_gpu import SeenGpu
from ..findings import disk_forecast, eta, gpu_faults, health_levels
from ..findings.gpu_faults import Faults
from ..hang import active_time, gpu_signs, pauses, process_signs, step_peak
from ..knowledge import Knowledge
from ..recovery import restart_stages, save_first
from ..recovery.resume_point import unclear_states
from ..recovery.save_first import TERMINATION
from ..run_machine import is_live, is_watched
from ..run_states import Hung, WaitingForGpu, WaitingForRoom
from ..state import NOTHING, DiskLow, JudgeState, Result
from ..step_builder import StepBuilder
from . import foreign_pause, hang_check, hints, on_ranks, terminal_question
from .hang_check import check_hang

replace = msgspec.structs.replace
SECONDS = re.compile(r"\d+(?:\.\d+)? s\b")


def on_gpu(knowledge: Knowledge, state: JudgeState, sample: GpuSample) -> Result:
    """Take a sample of all GPUs of the machine."""
    time = active_time.sampled(state.time)
    now = active_time.now(time)
    watched = is_watched(state.machine)
    bands, changes = health_levels.take(
        state.bands,
        health_levels.gpu_values(sample, training=watched and state.clock.beats > 0),
        _table(knowledge, state),
        time.t,
    )
    if watched:
        seen = gpu_signs.with_gpus(state.liveness, sample, now, knowledge.settings.hang, state.clock.last)
        state = replace(state, time=time, liveness=seen, bands=bands, peak=_peak(state, now))
    else:
        state = replace(state, time=time, bands=bands)
    if sample.gpus and (gpus := tuple([SeenGpu(gpu.own, gpu.pci) for gpu in sample.gpus])) != state.gpus_seen:
        state = replace(state, gpus_seen=gpus)
    state = _with_gpus(state, sample, watched=watched)
    entries = _report_levels(knowledge, state, changes) if changes else None
    faults, begun, over = gpu_faults.take(state.gpu_faults, sample, time.t)
    if faults is not state.gpu_faults:
        entries = entries if entries is not None else StepBuilder(knowledge, state)
        _report_faults(entries, faults, begun, over)
    if watched and knowledge.settings.profiles.ladder and (state.spare_since is not None or hints.has_spare(state)):
        entries = entries if entries is not None else StepBuilder(knowledge, state)
        hints.on_spare(entries)
    if isinstance(state.machine, WaitingForGpu):
        entries = entries if entries is not None else StepBuilder(knowledge, state)
        restart_stages.on_gpus(entries, state.machine)
    if not watched and any(i.class_.endswith(".vram") for i in state.incidents) and not is_live(state.machine):
        entries = _close_vram(entries if entries is not None else StepBuilder(knowledge, state))
    if sample.trouble != state.gpu_trouble and _without_seconds(sample.trouble) != _without_seconds(state.gpu_trouble):
        builder = entries if entries is not None else StepBuilder(knowledge, state)
        builder.set(gpu_trouble=sample.trouble)
        builder.note(f"GPU readings: {sample.trouble}" if sample.trouble else "GPU readings are back")
        entries = builder
    if entries is not None:
        return check_hang(knowledge, entries.state, tuple(entries.entries))
    return check_hang(knowledge, state, NOTHING)


def _without_seconds(trouble: str | None) -> str | None:
    """What is wrong, without for how long: a time that grows makes no new trouble."""
    return None if trouble is None else SECONDS.sub("", trouble)


def _report_faults(builder: StepBuilder, faults: Faults, begun: tuple[str, ...], over: tuple[str, ...]) -> None:
    builder.set(gpu_faults=faults)
    known = {incident.class_ for incident in builder.state.incidents}
    for name in begun:
        fault = faults[name]
        if name in known:  # of an earlier supervisor
            continue
        if not fault.severe:
            builder.warn("health", name, fault.text)
            continue
        number = builder.open_incident("health", name, fault.text, severity="danger")
        builder.notify("incident", fault.text, "", incident=number)
    for incident in [each for each in builder.state.incidents if each.class_ in over]:
        builder.close_incident(incident.id, "it is over")


def _with_gpus(state: JudgeState, sample: GpuSample, *, watched: bool) -> JudgeState:
    """The state with what is known of the GPUs of the run. A sample without readings says nothing about them."""
    own = tuple(gpu.index for gpu in sample.gpus if gpu.own)
    ours = own if watched and own else state.gpus_of_run
    readings = [gpu for gpu in sample.gpus if not ours or gpu.index in ours]
    usable = any(gpu.trouble is None for gpu in readings) if readings else state.gpus_usable
    if (ours, usable) == (state.gpus_of_run, state.gpus_usable):
        return state
    return replace(state, gpus_of_run=ours, gpus_usable=usable)


def on_host(knowledge: Knowledge, state: JudgeState, sample: HostSample) -> Result:
    """Take a sample of memory and disk."""
    time = active_time.sampled(state.time)
    bands, changes = health_levels.take(
        state.bands, health_levels.host_values(sample), _table(knowledge, state), time.t
    )
    free = sample.disk_free_bytes if sample.disk_free_bytes is not None else state.disk_free_bytes
    total = sample.disk_total_bytes if sample.disk_total_bytes is not None else state.disk_total_bytes
    if (total, sample.disk_free_inodes) != (state.disk_total_bytes, state.disk_free_inodes):
        state = replace(state, disk_total_bytes=total, disk_free_inodes=sample.disk_free_inodes)
    counted = (sample.oom_kills, sample.oom_counter) == (state.oom_kills, state.oom_counter)
    if time is not state.time or bands is not state.bands or not counted or free != state.disk_free_bytes:
        state = replace(_counted(state, sample), time=time, bands=bands, disk_free_bytes=free)
    low, swap = _disk_low(state.disk_low, sample), _swap_used(sample)
    if low is not state.disk_low or swap != state.swap_used:
        state = replace(state, disk_low=low, swap_used=swap)
    builder = _report_levels(knowledge, state, changes) if changes else None
    if state.tight_since is not None or (is_watched(state.machine) and hints.is_tight(sample)):
        builder = builder if builder is not None else StepBuilder(knowledge, state)
        hints.on_host(builder, sample)
    machine = state.machine
    if isinstance(machine, WaitingForRoom) and restart_stages.has_room(sample, machine):
        builder = builder if builder is not None else StepBuilder(knowledge, state)
        restart_stages.on_room(builder, machine)
    if is_watched(machine) and any(known.unclear is not None for known in state.checkpoints.known):
        builder = builder if builder is not None else StepBuilder(knowledge, state)
        unclear_states.recognise(builder)
        unclear_states.tell(builder)
    if sample.disk_free_bytes is not None and (state.checkpoints.known or state.disk.saves or state.incidents):
        saves = sum([known.own and known.complete for known in state.checkpoints.known])
        if saves != state.disk.saves or any(i.class_ == disk_forecast.CLASS for i in state.incidents):
            builder = _fill(builder or StepBuilder(knowledge, state), sample.disk_free_bytes, saves)
    if builder is not None:
        return builder.state, tuple(builder.entries)
    return state, NOTHING


LOW_FOR_S = 60.0
"""How long the least room counts: a save that did not fit takes less, and its file may be gone at the end."""


def _counted(state: JudgeState, sample: HostSample) -> JudgeState:
    """The state with the count of kills for memory. After a change of the counter the number is unknown at first."""
    if state.oom_kills is None:
        before = sample.oom_kills
    elif sample.oom_counter != state.oom_counter:
        before = None
    else:
        before = state.oom_kills if state.oom_kills_before is None else state.oom_kills_before
    return replace(state, oom_kills=sample.oom_kills, oom_kills_before=before, oom_counter=sample.oom_counter)


def _disk_low(low: DiskLow | None, sample: HostSample) -> DiskLow | None:
    free = sample.disk_free_bytes
    if free is None or (low is not None and low.free_bytes <= free and sample.t - low.t <= LOW_FOR_S):
        return low
    return DiskLow(free, sample.t)


def _swap_used(sample: HostSample) -> float | None:
    if sample.swap_used_bytes is None or not sample.swap_total_bytes:
        return None
    return round(sample.swap_used_bytes / sample.swap_total_bytes, 3)


def _fill(builder: StepBuilder, free_bytes: float, saves: int) -> StepBuilder:
    """Warn if the disk will be full before the training is done. While a restart waits for room, it is full."""
    state = builder.state
    if isinstance(state.machine, WaitingForRoom):
        return builder
    now = active_time.now(state.time)
    use = disk_forecast.with_free(state.disk, now, free_bytes, saves)
    builder.set(disk=use)
    warned = next((i for i in state.incidents if i.class_ == disk_forecast.CLASS), None)
    sizes = [k.size_bytes for k in state.checkpoints.known if k.own and k.complete and k.size_bytes is not None]
    coming = disk_forecast.forecast(use, now, free_bytes, max(sizes, default=None))
    need_s = eta.eta_s(state.pace, state.progress)
    if warned is not None:
        if disk_forecast.is_enough(use, coming, need_s):
            builder.close_incident(warned.id, "there is room again")
        return builder
    if need_s is None and state.progress.run_total_steps is not None:
        return builder  # the time left is known soon
    if coming is not None and disk_forecast.is_short(use, coming, need_s):
        reason = disk_forecast.describe_forecast(coming)
        builder.warn("disk", disk_forecast.CLASS, reason, title="the disk fills")
    return builder


SAVE_METRICS = ("ram_used", "ram_available", "temp")
"""Metrics whose level *danger* means that the machine may end the trainer soon. A full disk takes no checkpoint."""


def on_termination(knowledge: Knowledge, state: JudgeState, notice: TerminationNotice) -> Result:
    """The cloud will end this machine: notify, and ask the trainer for a checkpoint."""
    builder = StepBuilder(knowledge, state)
    if any(i.class_ == TERMINATION for i in state.incidents):
        return state, NOTHING
    number = builder.warn("health", TERMINATION, notice.text, title="this machine will be ended")
    builder.set(save_asked_t=None)  # the last one
    save_first.on_danger(builder, notice.text, number)
    return builder.state, tuple(builder.entries)


def on_process(knowledge: Knowledge, state: JudgeState, sample: ProcessSample) -> Result:
    """Take a sample of the trainer's processes."""
    time = active_time.sampled(state.time)
    if not is_watched(state.machine):
        return (state if time is state.time else replace(state, time=time)), NOTHING
    now = active_time.now(time)
    seen = process_signs.with_process(state.liveness, sample, now, knowledge.settings.hang, state.clock.last)
    busy = foreign_pause.others_work(seen, now, active_time.longest_gap(time.period_s))
    pause = pauses.with_process(state.pause, sample, time.t, others_work=busy)
    state = replace(state, time=time, liveness=seen, pause=pause, peak=_peak(state, now))
    state, entries = on_ranks.on_sample(knowledge, state, sample)
    if isinstance(state.machine, Hung) and state.machine.blocked:
        builder = StepBuilder(knowledge, state)
        hang_check.on_freed(builder, state.machine)
        return builder.state, (*entries, *builder.entries)
    asked = sample.asks is not None or state.asks_since is not None
    if not asked and not foreign_pause.concerns(state):
        return check_hang(knowledge, state, entries)
    builder = StepBuilder(knowledge, state)
    foreign_pause.check(builder)
    if asked:
        terminal_question.check(builder, sample)
    return check_hang(knowledge, builder.state, (*entries, *builder.entries))


def _peak(state: JudgeState, now: float) -> step_peak.StepPeak:
    """Return the highest step. A time without any reading does not count as one without progress."""
    seen = state.liveness
    last = max(seen.process_at or 0.0, seen.gpu_at or 0.0)
    unseen = last > 0.0 and now - last > active_time.longest_gap(state.time.period_s)
    return step_peak.excuse(state.peak, now - last) if unseen else state.peak


def _close_vram(builder: StepBuilder) -> StepBuilder:
    """Close warnings of GPU memory: it is judged only while a trainer runs."""
    builder.set(bands={name: band for name, band in builder.state.bands.items() if not name.endswith(".vram")})
    for incident in builder.state.incidents:
        if incident.kind == "health" and incident.class_.endswith(".vram"):
            builder.close_incident(incident.id, "the trainer has ended")
    return builder


def _table(knowledge: Knowledge, state: JudgeState) -> dict[str, health_levels.Metric]:
    return knowledge.levels["stable" if state.profile == "stable" else ""]


def _report_levels(knowledge: Knowledge, state: JudgeState, changes: tuple[health_levels.Change, ...]) -> StepBuilder:
    builder = StepBuilder(knowledge, state)
    for change in changes:
        builder.fact(
            HealthChanged(
                metric=change.metric,
                value=change.value,
                unit=change.unit,
                level=change.level,
                before=change.before,
            )
        )
        kind: IncidentKind = "disk" if change.metric == "disk_free" else "health"
        known = next((i for i in builder.state.incidents if i.kind == kind and i.class_ == change.metric), None)
        if change.alarming and known is None:
            number = builder.warn(kind, change.metric, health_levels.sentence(change))
            if kind == "health" and change.level == "danger" and change.metric.endswith(SAVE_METRICS):
                save_first.on_danger(builder, health_levels.sentence(change), number)
        elif known is not None and not change.alarming:
            builder.close_incident(known.id, f"{reading_name(change.metric)} is {change.level} again")
    return builder
