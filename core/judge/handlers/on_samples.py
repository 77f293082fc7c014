"""Samples of GPUs, host and process tree: signs of life, health levels, disk space and a stopped trainer."""

import re
from collections.abc import Iterator, Sequence

import msgspec

from ...model.attempt import OTHER_TRAINER, Evidence, IncidentKind
from ...model.fact import HealthChanged
from ...model.health_words import reading_name
from ...model.job import never_ends
from ...model.observation import (
    GpuSample,
    HostSample,
    JobSeen,
    OtherTrainer,
    OtherTrainersSeen,
    ProcessSample,
    RankEnded,
    TerminationNotice,
)
from ...model.suggestion import typed
from ...model.text import beginning, plural
from ..failure.circumstances import SeenGpu
from ..failure.log_evidence import read_evidence
from ..findings import health, pace
from ..findings.health import Faults
from ..hang import activity, deadlines, launcher, liveness, pauses, ranks
from ..hang import evidence as gpu_signs
from ..hang import liveness as process_signs
from ..hang import pauses as active_time
from ..knowledge import Knowledge
from ..progress import begin_attempt
from ..recovery import attempts, exits, restarts, unclear_states
from ..recovery.attempts import TERMINATION, close_quiet
from ..recovery.commands import follow_trainer
from ..run_states import Hung, Queued, Running, Starting, Suspended, WaitingForGpu, WaitingForRoom, is_live, is_watched
from ..state import NOTHING, DiskLow, JudgeState, Result, StepBuilder
from . import hang_check, hints
from . import hang_check as terminal_question
from .hang_check import check_hang

replace = msgspec.structs.replace
SECONDS = re.compile(r"\d+(?:\.\d+)? s\b")


def on_gpu(knowledge: Knowledge, state: JudgeState, sample: GpuSample) -> Result:
    """Take a sample of all GPUs of the machine."""
    time = active_time.sampled(state.time)
    now = active_time.now(time)
    watched = is_watched(state.machine)
    bands, changes = health.take(
        state.bands,
        health.gpu_values(sample, training=watched and state.clock.beats > 0),
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
    faults, begun, over = health.take_faults(state.gpu_faults, sample, time.t)
    if faults is not state.gpu_faults:
        entries = entries if entries is not None else StepBuilder(knowledge, state)
        _report_faults(entries, faults, begun, over)
    if watched and knowledge.settings.profiles.ladder and (state.spare_since is not None or hints.has_spare(state)):
        entries = entries if entries is not None else StepBuilder(knowledge, state)
        hints.on_spare(entries)
    if isinstance(state.machine, WaitingForGpu):
        entries = entries if entries is not None else StepBuilder(knowledge, state)
        restarts.on_gpus(entries, state.machine)
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
    bands, changes = health.take(state.bands, health.host_values(sample), _table(knowledge, state), time.t)
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
    if isinstance(machine, WaitingForRoom) and restarts.has_room(sample, machine):
        builder = builder if builder is not None else StepBuilder(knowledge, state)
        restarts.on_room(builder, machine)
    if is_watched(machine) and any(known.unclear is not None for known in state.checkpoints.known):
        builder = builder if builder is not None else StepBuilder(knowledge, state)
        unclear_states.recognise(builder)
        unclear_states.tell(builder)
    if sample.disk_free_bytes is not None and (state.checkpoints.known or state.disk.saves or state.incidents):
        saves = sum([known.own and known.complete for known in state.checkpoints.known])
        if saves != state.disk.saves or any(i.class_ == health.CLASS for i in state.incidents):
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
    use = health.with_free(state.disk, now, free_bytes, saves)
    builder.set(disk=use)
    warned = next((i for i in state.incidents if i.class_ == health.CLASS), None)
    sizes = [k.size_bytes for k in state.checkpoints.known if k.own and k.complete and k.size_bytes is not None]
    coming = health.forecast(use, now, free_bytes, max(sizes, default=None))
    need_s = pace.eta_s(state.pace, state.progress)
    if warned is not None:
        if health.is_enough(use, coming, need_s):
            builder.close_incident(warned.id, "there is room again")
        return builder
    if need_s is None and state.progress.run_total_steps is not None:
        return builder  # the time left is known soon
    if coming is not None and health.is_short(use, coming, need_s):
        reason = health.describe_forecast(coming)
        builder.warn("disk", health.CLASS, reason, title="the disk fills")
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
    attempts.on_danger(builder, notice.text, number)
    return builder.state, tuple(builder.entries)


def on_process(knowledge: Knowledge, state: JudgeState, sample: ProcessSample) -> Result:
    """Take a sample of the trainer's processes."""
    time = active_time.sampled(state.time)
    if not is_watched(state.machine):
        return (state if time is state.time else replace(state, time=time)), NOTHING
    now = active_time.now(time)
    seen = process_signs.with_process(state.liveness, sample, now, knowledge.settings.hang, state.clock.last)
    busy = others_work(seen, now, active_time.longest_gap(time.period_s))
    pause = pauses.with_process(state.pause, sample, time.t, others_work=busy)
    state = replace(state, time=time, liveness=seen, pause=pause, peak=_peak(state, now))
    state, entries = on_sample(knowledge, state, sample)
    if isinstance(state.machine, Hung) and state.machine.blocked:
        builder = StepBuilder(knowledge, state)
        hang_check.on_freed(builder, state.machine)
        return builder.state, (*entries, *builder.entries)
    asked = sample.asks is not None or state.asks_since is not None
    if not asked and not concerns(state):
        return check_hang(knowledge, state, entries)
    builder = StepBuilder(knowledge, state)
    check(builder)
    if asked:
        terminal_question.check(builder, sample)
    return check_hang(knowledge, builder.state, (*entries, *builder.entries))


def _peak(state: JudgeState, now: float) -> deadlines.StepPeak:
    """Return the highest step. A time without any reading does not count as one without progress."""
    seen = state.liveness
    last = max(seen.process_at or 0.0, seen.gpu_at or 0.0)
    unseen = last > 0.0 and now - last > active_time.longest_gap(state.time.period_s)
    return deadlines.excuse(state.peak, now - last) if unseen else state.peak


def _close_vram(builder: StepBuilder) -> StepBuilder:
    """Close warnings of GPU memory: it is judged only while a trainer runs."""
    builder.set(bands={name: band for name, band in builder.state.bands.items() if not name.endswith(".vram")})
    for incident in builder.state.incidents:
        if incident.kind == "health" and incident.class_.endswith(".vram"):
            builder.close_incident(incident.id, "the trainer has ended")
    return builder


def _table(knowledge: Knowledge, state: JudgeState) -> dict[str, health.Metric]:
    return knowledge.levels["stable" if state.profile == "stable" else ""]


def _report_levels(knowledge: Knowledge, state: JudgeState, changes: tuple[health.Change, ...]) -> StepBuilder:
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
            number = builder.warn(kind, change.metric, health.sentence(change))
            if kind == "health" and change.level == "danger" and change.metric.endswith(SAVE_METRICS):
                attempts.on_danger(builder, health.sentence(change), number)
        elif known is not None and not change.alarming:
            builder.close_incident(known.id, f"{reading_name(change.metric)} is {change.level} again")
    return builder


# The ranks of a distributed training: restarts of the workers by their launcher, and what ranks left at their end.


def on_sample(knowledge: Knowledge, state: JudgeState, sample: ProcessSample) -> Result:
    """Take the ranks and their launchers of a sample, while the run is watched."""
    if not sample.ranks and not state.ranks and not sample.agents:
        return state, NOTHING
    found = ranks.with_processes(state.ranks, sample.ranks, state.time.t)
    known, again = launcher.with_sample(state.launcher, sample)
    state = replace(state, ranks=found, launcher=known)
    most = launcher.most_restarts(known)
    if not again and (known.told or not most):
        return state, NOTHING
    builder = StepBuilder(knowledge, state)
    if most and not known.told:
        builder.set(launcher=replace(known, told=True))
        builder.note(
            f"torchrun starts its workers again by itself, up to {most} times for each agent; "
            "trainwatch restarts when torchrun has ended, or when the run hangs"
        )
    if again and not isinstance(state.machine, Hung):
        _begin_again(builder, ", ".join(str(each) for each in again))
    return builder.state, tuple(builder.entries)


def _begin_again(builder: StepBuilder, who: str) -> None:
    """The launcher started its workers again: the same attempt, whose steps begin at a checkpoint again."""
    state = builder.state
    now = active_time.now(state.time)
    at = state.attempt.step
    number = state.launcher.restarts
    close_quiet(builder, "torchrun started its workers again")
    builder.set(
        launcher=replace(builder.state.launcher, from_step=at),
        reading=replace(begin_attempt(state.reading), fold=state.reading.fold),
        clock=deadlines.begin_attempt(state.clock, now),
    )
    after = "" if at is None else f" after step {at}"
    builder.note(f"torchrun started its workers again{after} (restart {number} by itself, none of trainwatch): {who}")


def on_first_step(builder: StepBuilder) -> None:
    """The first step after a restart of the workers: say how far they went back."""
    state = builder.state
    before, step = state.launcher.from_step, state.attempt.step
    if before is None or step is None:
        return
    builder.set(launcher=replace(state.launcher, from_step=None))
    lost = max(0, before - step + 1)
    builder.note(f"the workers go on at step {step}: {lost} step{'s' * (lost != 1)} are made again")


def on_rank_ended(knowledge: Knowledge, state: JudgeState, ended: RankEnded) -> Result:
    """Take what a rank left: evidence of the cause, also if its output is not in the log."""
    if not is_watched(state.machine) and not isinstance(state.machine, Queued):
        return state, NOTHING
    lines = [line for line in ended.text.splitlines() if line.strip()]
    last = lines[-1].strip() if lines else ""
    builder = StepBuilder(knowledge, state)
    builder.note(f"rank {ended.rank}{_process(ended)} ended: {beginning(last, 200)}")
    if last and last not in _shown(state):
        text = "".join(f"[rank{ended.rank}]: {line}\n" for line in lines)
        found = read_evidence(
            replace(state.diagnosis, fold=replace(state.diagnosis.fold, rest="")), text, knowledge.catalogue
        )
        builder.set(diagnosis=replace(found, fold=state.diagnosis.fold))
    return builder.state, tuple(builder.entries)


def _process(ended: RankEnded) -> str:
    return "" if ended.pid is None else f" (pid {ended.pid}{f' on {ended.node}' if ended.node else ''})"


def _shown(state: JudgeState) -> str:
    """What is known of the log as far as an error may stand there."""
    return "\n".join((state.diagnosis.tail, *(each.text for each in state.diagnosis.findings)))


# What the scheduler says of the job that the attempt runs as: while it waits in the queue, time does not count.
#
# An answer that does not come is no end and no hang. A job that waits for a reason that never ends by itself is told.

UNSCHEDULABLE = "unschedulable"
"""Class of the incident (kind ``stall``)."""


def on_job(knowledge: Knowledge, state: JudgeState, seen: JobSeen) -> Result:
    """Take what is known of the job."""
    builder = StepBuilder(knowledge, state)
    exits.note_job(builder, seen)
    machine = state.machine
    waits = isinstance(machine, Queued)
    if seen.phase == "queued" and (
        isinstance(machine, Running) or (isinstance(machine, Starting) and machine.launched)
    ):
        builder.set(
            time=msgspec.structs.replace(state.time, stopped=True),
            clock=deadlines.restart_wait(state.clock, active_time.now(state.time)),
        )
        close_quiet(builder, "its job waits in the queue")
        builder.move("queue", Queued(), _in_words(seen))
    elif waits and seen.phase in {"running", "ending", "ended"}:
        time = msgspec.structs.replace(state.time, stopped=False)
        now = active_time.now(time)
        builder.set(
            time=time,
            clock=deadlines.restart_wait(state.clock, now),
            liveness=liveness.after_gap(state.liveness, now),
        )
        follow_trainer(builder, f"job {seen.job} runs{f' on {seen.nodes}' if seen.nodes else ''}")
    _tell_unschedulable(builder, seen)
    exits.check(builder)
    return builder.state, tuple(builder.entries)


def _tell_unschedulable(builder: StepBuilder, seen: JobSeen) -> None:
    known = next((each for each in builder.state.incidents if each.class_ == UNSCHEDULABLE), None)
    change = never_ends(seen.reason) if seen.phase == "queued" else None
    if change is not None and known is None:
        builder.warn(
            "stall",
            UNSCHEDULABLE,
            f"job {seen.job} waits for {seen.reason}, which does not end by itself: {change}; with changed settings "
            f"`{typed('restart', builder.knowledge.run)}` submits it anew",
            title="its job cannot start",
        )
    elif known is not None and seen.phase != "unknown" and change is None:
        builder.close_incident(known.id, "it does not wait for that any more")


def _in_words(seen: JobSeen) -> str:
    return f"job {seen.job} is {seen.state or 'PENDING'}" + (f" ({seen.reason})" if seen.reason else "")


# A trainer that began beside a live attempt and writes where it writes: people are told, and nothing is ended for it.
#
# Source: a training that was started by hand a second time in its folder, while the first one ran: checkpoints of both
# lay there under the same names. Known false alarms: a command that takes its output folder from the environment, so
# that two of the same command write to two folders.

SHOWN = 3
"""Most trainers, and most files of one, that are told of."""
TITLE = "another trainer writes there"


def on_other_trainers(knowledge: Knowledge, state: JudgeState, seen: OtherTrainersSeen) -> Result:
    """Open the incident, keep its evidence up to date, or close it."""
    known = next((each for each in state.incidents if each.class_ == OTHER_TRAINER), None)
    builder = StepBuilder(knowledge, state)
    if not seen.trainers:
        if known is not None:
            builder.close_incident(known.id, "the other trainer is over: what it wrote is still there")
    elif not is_live(state.machine):
        return state, NOTHING
    else:
        reason, evidence = _reason(seen.trainers), tuple(_evidence(seen.trainers))
        advice = _advice(knowledge, seen.trainers)
        if known is None:
            number = builder.open_incident(
                "checkpoint", OTHER_TRAINER, reason, evidence=evidence, explanation=advice, title=TITLE
            )
            builder.notify("warning", TITLE, f"{reason}; {advice}", incident=number)
        elif (known.reason, known.evidence) != (reason, evidence):
            builder.update_incident(known.id, reason=reason, evidence=evidence, explanation=advice)
            if known.reason != reason:
                builder.note(reason)
    return builder.state, tuple(builder.entries)


def _reason(trainers: Sequence[OtherTrainer]) -> str:
    first, more = trainers[0], len(trainers) - 1
    since = f", since {first.began}" if first.began else ""
    who = f"another trainer (pid {first.pid}{since})" + (f" and {plural(more, 'other')}" if more else "")
    return f"{who} writes to {first.folder or 'the same output folder'}, too"


def _advice(knowledge: Knowledge, trainers: Sequence[OtherTrainer]) -> str:
    pids = " ".join(str(each.pid) for each in trainers)
    return (
        f"`{trainers[0].command}` was started without trainwatch beside this attempt; each may overwrite what the "
        f"other saves: end one (`kill {pids}` or `{knowledge.typed('stop')}`)"
    )


def _evidence(trainers: Sequence[OtherTrainer]) -> Iterator[Evidence]:
    for each in trainers[:SHOWN]:
        who = f"pid {each.pid}"
        since = f", since {each.began}" if each.began else ""
        yield Evidence(what=f"{who}{since}, in {each.cwd}: {each.command}")
        what = "the command of this run" if each.same == "training" else "the script of this run with other options"
        yield Evidence(what=f"{who} runs {what}")
        alone = tuple(file for file in each.files if file not in each.shared)
        if each.shared:
            yield Evidence(what=f"both have open for writing: {_files(each.shared)}")
        if alone:
            yield Evidence(what=f"{who} has open for writing: {_files(alone)}")
        if not each.files:
            yield Evidence(what=f"{who} has no file there open for writing at this moment")


def _files(files: Sequence[str]) -> str:
    more = len(files) - SHOWN
    return ", ".join(files[:SHOWN]) + (f" and {more} more" if more > 0 else "")


# A trainer that was stopped by a signal that is not ours: the run is *suspended* until somebody continues it.
#
# Time does not count meanwhile, so that nothing is ended; people are notified after ``hang.min_s``. Known false
# alarms:
# none that ends anything; a helper that used more CPU than the trainer itself looks like a pause, until the next step.

SUSPENDED = "suspended"
"""Class of the incident (kind ``stall``)."""


def others_work(seen: liveness.Liveness, now: float, fresh_s: float) -> bool:
    """Return whether a GPU of the run or its CPU is busy now: something that is not stopped still runs."""
    gpu = seen.gpu_at is not None and now - seen.gpu_at <= fresh_s and not activity.LOADED.isdisjoint(seen.gpu)
    return gpu or bool(seen.cpu_bits & 1)


def concerns(state: JudgeState) -> bool:
    """Return whether a stop is seen, or one that was seen may be over."""
    if state.pause.stopped != "none" or isinstance(state.machine, Suspended):
        return True
    return any(incident.class_ == SUSPENDED for incident in state.incidents)


def check(builder: StepBuilder) -> None:
    """Suspend the run, notify people of it, or go on."""
    state = builder.state
    pause, machine = state.pause, state.machine
    known = next((i for i in state.incidents if i.class_ == SUSPENDED), None)
    if pause.stopped != "all" or pause.since_t is None:
        if isinstance(machine, Suspended):
            _go_on(builder, "the trainer was continued")
        if known is not None:
            builder.close_incident(known.id, "it was continued")
    elif isinstance(machine, Starting | Running):
        builder.set(
            time=msgspec.structs.replace(state.time, stopped=True),
            clock=deadlines.restart_wait(state.clock, active_time.now(state.time)),
        )
        close_quiet(builder, "a signal stopped the trainer")
        builder.move("suspend", Suspended(), "a signal stopped every computing process (state T)")
    elif isinstance(machine, Suspended) and known is None:
        stopped_s = builder.t - pause.since_t
        if stopped_s >= builder.knowledge.settings.hang.min_s:
            how = f"`{builder.knowledge.typed('resume')}` (or `kill -CONT PID`) lets it go on"
            reason = f"a signal that is not from trainwatch stopped the trainer (state T): {how}"
            builder.warn("stall", SUSPENDED, reason, title="stopped by a signal")


def _go_on(builder: StepBuilder, reason: str) -> None:
    time = msgspec.structs.replace(builder.state.time, stopped=False)
    now = active_time.now(time)
    builder.set(
        time=time,
        clock=deadlines.restart_wait(builder.state.clock, now),
        liveness=liveness.after_gap(builder.state.liveness, now),
    )
    follow_trainer(builder, reason)
