"""Samples of GPUs, host and process tree: signs of life, levels, and the pace of looking itself."""

import msgspec

from ...model.fact import HealthChanged, Note
from ...model.incident import IncidentKind
from ...model.observation import GpuSample, HostSample, ProcessSample
from ..findings import disk_forecast, eta, health_levels
from ..hang import active_time, liveness, step_clock
from ..knowledge import Knowledge
from ..recovery import restart_stages
from ..run_machine import is_live, is_watched
from ..run_states import Held
from ..state import NOTHING, JudgeState, Result
from ..step_builder import Draft
from . import hints, terminal_question
from .hang_check import overdue

replace = msgspec.structs.replace


def on_gpu(knowledge: Knowledge, state: JudgeState, sample: GpuSample) -> Result:
    """All GPUs of the machine at one moment."""
    line = active_time.sampled(state.timeline)
    now = active_time.active(line)
    watched = is_watched(state.machine)
    bands, changes = health_levels.take(
        state.bands,
        health_levels.gpu_values(sample, training=watched and state.clock.beats > 0),
        _table(knowledge, state),
        line.t,
    )
    if watched:
        signs = liveness.with_gpus(state.liveness, sample, now, knowledge.settings.hang, state.clock.last)
        state = replace(state, timeline=line, liveness=signs, bands=bands)
    else:
        state = replace(state, timeline=line, bands=bands)
    entries = _say_health(knowledge, state, changes) if changes else None
    if not watched and any(i.class_.endswith(".vram") for i in state.incidents) and not is_live(state.machine):
        entries = _let_go_of_vram(entries if entries is not None else Draft(knowledge, state))
    if sample.trouble != state.gpu_trouble:
        draft = entries if entries is not None else Draft(knowledge, state)
        draft.set(gpu_trouble=sample.trouble)
        draft.note(f"GPU readings: {sample.trouble}" if sample.trouble else "GPU readings are back")
        entries = draft
    if entries is not None:
        return overdue(knowledge, entries.state, tuple(entries.entries))
    return overdue(knowledge, state, NOTHING)


def on_host(knowledge: Knowledge, state: JudgeState, sample: HostSample) -> Result:
    """Memory and disk."""
    line = active_time.sampled(state.timeline)
    bands, changes = health_levels.take(
        state.bands, health_levels.host_values(sample), _table(knowledge, state), line.t
    )
    kills = sample.oom_kills
    free = sample.disk_free_bytes if sample.disk_free_bytes is not None else state.disk_free_bytes
    if (
        line is not state.timeline
        or bands is not state.bands
        or kills != state.oom_kills
        or free != state.disk_free_bytes
    ):
        before = state.oom_kills_before if state.oom_kills_before is not None else kills
        state = replace(
            state, timeline=line, bands=bands, oom_kills=kills, oom_kills_before=before, disk_free_bytes=free
        )
    draft = _say_health(knowledge, state, changes) if changes else None
    if state.tight_since is not None or (is_watched(state.machine) and hints.is_tight(sample)):
        draft = draft if draft is not None else Draft(knowledge, state)
        hints.on_host(draft, sample)
    machine = state.machine
    if isinstance(machine, Held) and (sample.disk_free_bytes or 0.0) >= machine.need_bytes:
        draft = draft if draft is not None else Draft(knowledge, state)
        restart_stages.on_room(draft, machine)
    if sample.disk_free_bytes is not None and (state.shelf.known or state.disk.saves or state.incidents):
        saves = sum([known.own and known.complete for known in state.shelf.known])
        if saves != state.disk.saves or any(i.class_ == FILLING for i in state.incidents):
            draft = _fill(draft or Draft(knowledge, state), sample.disk_free_bytes, saves)
    if draft is not None:
        return draft.state, tuple(draft.entries)
    return state, NOTHING


def _fill(draft: Draft, free_bytes: float, saves: int) -> Draft:
    """Tell when the disk will be full before the training is done."""
    state = draft.state
    now = active_time.active(state.timeline)
    use = disk_forecast.with_free(state.disk, now, free_bytes, saves)
    draft.set(disk=use)
    told = next((i for i in state.incidents if i.class_ == FILLING), None)
    sizes = [k.size_bytes for k in state.shelf.known if k.own and k.complete and k.size_bytes is not None]
    coming = disk_forecast.forecast(use, now, free_bytes, max(sizes, default=None))
    need_s = eta.eta_s(state.pace, state.progress)
    if told is not None:
        if disk_forecast.is_enough(use, coming, need_s):
            draft.close_incident(told.id, "there is room again")
        return draft
    if need_s is None and state.progress.total_steps is not None:
        return draft  # how long it still takes is known soon
    if coming is not None and disk_forecast.is_short(use, coming, need_s):
        reason = disk_forecast.say_forecast(coming)
        draft.warn("disk", FILLING, reason, title="the disk fills")
    return draft


FILLING = "filling"


def on_process(knowledge: Knowledge, state: JudgeState, sample: ProcessSample) -> Result:
    """The trainer's process tree."""
    line = active_time.sampled(state.timeline)
    if not is_watched(state.machine):
        return (state if line is state.timeline else replace(state, timeline=line)), NOTHING
    now = active_time.active(line)
    signs = liveness.with_process(state.liveness, sample, now, knowledge.settings.hang, state.clock.last)
    if signs.stopped != line.stopped:
        return _stop_or_go(state, line, signs)
    state = replace(state, timeline=line, liveness=signs)
    if sample.asks is None and state.asks_since is None:
        return overdue(knowledge, state, NOTHING)
    draft = Draft(knowledge, state)
    terminal_question.look(draft, sample)
    return overdue(knowledge, draft.state, tuple(draft.entries))


def _stop_or_go(state: JudgeState, line: active_time.Timeline, signs: liveness.Liveness) -> Result:
    """The trainer was stopped (state T) or continued from outside: time does not count while it stands."""
    now = active_time.active(line)
    said = "a person stopped the trainer (state T)" if signs.stopped else "the trainer was continued"
    state = replace(
        state,
        timeline=replace(line, stopped=signs.stopped),
        liveness=signs if signs.stopped else liveness.after_gap(signs, now),
        clock=step_clock.grace_after(state.clock, now),
    )
    return state, (Note(text=said),)


def _let_go_of_vram(draft: Draft) -> Draft:
    """VRAM is judged only while something trains: what was told of it ends with the trainer."""
    draft.set(bands={name: band for name, band in draft.state.bands.items() if not name.endswith(".vram")})
    for incident in draft.state.incidents:
        if incident.kind == "health" and incident.class_.endswith(".vram"):
            draft.close_incident(incident.id, "the trainer has ended")
    return draft


def _table(knowledge: Knowledge, state: JudgeState) -> dict[str, health_levels.Metric]:
    return knowledge.levels["stable" if state.profile == "stable" else ""]


def _say_health(knowledge: Knowledge, state: JudgeState, changes: tuple[health_levels.Change, ...]) -> Draft:
    draft = Draft(knowledge, state)
    for change in changes:
        draft.fact(
            HealthChanged(
                metric=change.metric,
                value=change.value,
                unit=change.unit,
                level=change.level,
                before=change.before,
            )
        )
        kind: IncidentKind = "disk" if change.metric == "disk_free" else "health"
        known = next((i for i in draft.state.incidents if i.kind == kind and i.class_ == change.metric), None)
        if change.alarming and known is None:
            draft.warn(kind, change.metric, health_levels.sentence(change))
        elif known is not None and not change.alarming:
            draft.close_incident(known.id, f"{change.metric} is {change.level} again")
    return draft
