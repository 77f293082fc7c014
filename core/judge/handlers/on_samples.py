"""Samples of GPUs, host and process tree: signs of life, health levels, disk space and a stopped trainer."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from ...model import observation as observations
from ...model.progress import metrics, reading_name
from ...model.run import OTHER_TRAINER, Evidence, IncidentKind, never_ends
from ...model.text import beginning, plural, typed
from .. import findings, run_states
from ..failure.catalogue import SeenGpu
from ..failure.diagnosis import read_log
from ..hang import deadlines, liveness, pauses
from ..hang.liveness import with_gpus
from ..progress import begin_attempt
from ..recovery import attempts, exits, restarts, resume_choice
from ..recovery.attempts import TERMINATION, close_quiet
from ..recovery.commands import SUSPENDED, awake
from ..scales import HALF_AGAIN, LASTS_S, SHOWN
from ..state import StepBuilder
from . import hang_check, hints

replace = msgspec.structs.replace
SECONDS = re.compile(r"\d+(?:\.\d+)? s\b")


def on_gpu(builder: StepBuilder, sample: observations.GpuSample) -> None:
    """Take a sample of all GPUs of the machine."""
    settings, machine = builder.settings, builder.machine
    watched, state = _sampled(builder), builder.state
    if watched:
        seen, last = state.watch.liveness, state.watch.clock.last
        builder.change("watch", liveness=with_gpus(seen, sample, builder.now, last))
    if sample.gpus and (gpus := tuple([SeenGpu(gpu.own, gpu.pci) for gpu in sample.gpus])) != state.health.gpus_seen:
        builder.change("health", gpus_seen=gpus)
    if settings.evaluate.wanted:
        builder.change("saved.evaluations", gpus=sample.gpus)
    _see_usable(builder, sample, watched=watched)
    _take_levels(builder, findings.gpu_values(sample, training=watched and state.watch.clock.beats > 0))
    _take_faults(builder, sample)
    if watched and settings.profiles.ladder:
        hints.on_spare(builder)
    if isinstance(machine, run_states.BackingOff):
        restarts.on_gpus(builder, machine)
    if not watched and not run_states.is_live(machine):
        _close_vram(builder)
    # What is wrong, without for how long: a time that grows makes no new trouble.
    if SECONDS.sub("", sample.trouble or "") != SECONDS.sub("", state.health.gpu_trouble or ""):
        builder.change("health", gpu_trouble=sample.trouble)
        builder.note(f"GPU readings: {sample.trouble}" if sample.trouble else "GPU readings are back")
    hang_check.check_hang(builder)


def _take_faults(builder: StepBuilder, sample: observations.GpuSample) -> None:
    known = builder.state.health.gpu_faults
    faults = findings.take_faults(known, sample, builder.t)
    counted = {name for name, fault in known.items() if fault.counts}
    builder.change("health", gpu_faults=faults)
    for name, fault in faults.items():
        if not fault.counts or name in counted or builder.open_of(name) is not None:  # of an earlier supervisor
            continue
        if not fault.severe:
            builder.warn("health", name, fault.text)
            continue
        number = builder.open_incident("health", name, fault.text, severity="danger")
        builder.notify("incident", fault.text, "", incident=number)
    builder.close_all("it is over", *(counted - faults.keys()))


def _see_usable(builder: StepBuilder, sample: observations.GpuSample, *, watched: bool) -> None:
    """Note which GPUs the run uses and whether one answers. A sample without readings says nothing about them."""
    state = builder.state
    own = tuple([gpu.index for gpu in sample.gpus if gpu.own])
    ours = own if watched and own else state.health.gpus_of_run
    readings = [gpu for gpu in sample.gpus if not ours or gpu.index in ours]
    usable = any(gpu.trouble is None for gpu in readings) if readings else state.health.gpus_usable
    if (ours, usable) != (state.health.gpus_of_run, state.health.gpus_usable):
        builder.change("health", gpus_of_run=ours, gpus_usable=usable)


def on_host(builder: StepBuilder, sample: observations.HostSample) -> None:
    """Take a sample of memory and disk."""
    builder.set(time=pauses.sampled(builder.state.time))
    state, machine, free = builder.state, builder.machine, sample.disk_free_bytes
    builder.set(health=findings.with_host(state.health, sample))
    _take_levels(builder, findings.host_values(sample))
    if state.health.tight_since is not None or (run_states.is_watched(machine) and hints.is_tight(sample)):
        hints.on_host(builder, sample)
    if isinstance(machine, run_states.BackingOff):
        restarts.on_room(builder, machine, sample)
    if run_states.is_watched(machine) and any(known.unclear is not None for known in state.saved.checkpoints.known):
        resume_choice.recognise(builder)
        resume_choice.tell(builder)
    machine = builder.machine
    for_room = isinstance(machine, run_states.BackingOff) and machine.need_bytes is not None
    if free is not None and not for_room:
        saves = sum([known.own and known.complete for known in state.saved.checkpoints.known])
        if saves != state.health.disk.saves or builder.open_of(findings.CLASS) is not None:
            _fill(builder, free, saves)


def _fill(builder: StepBuilder, free_bytes: float, saves: int) -> None:
    """Warn if the disk will be full before the training is done. While a restart waits for room, it is full."""
    state, known = builder.state, builder.open_of(findings.CLASS)
    use = findings.with_free(state.health.disk, builder.now, free_bytes, saves)
    builder.change("health", disk=use)
    sizes = [k.size_bytes for k in state.saved.checkpoints.known if k.own and k.complete and k.size_bytes is not None]
    coming = findings.forecast(use, builder.now, free_bytes, max(sizes, default=None))
    need_s = findings.eta_s(state.course.pace, state.progress)
    if coming is None:
        return
    is_known = need_s is not None or state.progress.run_total_steps is None  # else the time left is known soon
    need_s = findings.HORIZON_S if need_s is None else need_s
    if known is not None and coming.full_s > HALF_AGAIN * need_s:
        builder.close_all("there is room again", findings.CLASS)
    if known is None and is_known and coming.is_sure and coming.full_s < need_s:
        builder.warn("disk", findings.CLASS, coming.sentence, title="the disk fills")


SAVE_METRICS = ("ram_used", "ram_available", "temp")
"""Metrics whose level *danger* means that the machine may end the trainer soon. A full disk takes no checkpoint."""


def on_termination(builder: StepBuilder, notice: observations.TerminationNotice) -> None:
    """The cloud will end this machine: notify, and ask the trainer for a checkpoint."""
    if builder.open_of(TERMINATION) is None:
        number = builder.warn("health", TERMINATION, notice.text, title="this machine will be ended")
        builder.change("saved", save_asked_t=None)  # the last one
        attempts.on_danger(builder, notice.text, number)


def on_process(builder: StepBuilder, sample: observations.ProcessSample) -> None:
    """Take a sample of the trainer's processes."""
    if not _sampled(builder):
        if isinstance(builder.machine, run_states.Paused) and sample.states.keys() & {"R", "S", "D", "T"}:
            was, pause = builder.state.watch.pause, pauses.with_process(builder.state.watch.pause, sample, builder.t)
            builder.change("watch", pause=pause)
            if was.stopped == "all" and pause.stopped == "none":
                awake(builder, "the trainer was continued")  # by `kill -CONT`, not by us: it is watched again
        return
    state, now = builder.state, builder.now
    seen = liveness.with_process(state.watch.liveness, sample, now, builder.settings.hang, state.watch.clock.last)
    # Something that is not stopped still runs if a GPU of the run or its CPU is busy now.
    fresh = seen.gpu_at is not None and now - seen.gpu_at <= pauses.longest_gap(state.time.period_s)
    works = bool(seen.working.bits & 1) or (fresh and not liveness.LOADED.isdisjoint(seen.gpu))
    pause = pauses.with_process(state.watch.pause, sample, builder.t, others_work=works)
    builder.change("watch", liveness=seen, pause=pause)
    _see_ranks(builder, sample)
    machine = builder.machine
    if isinstance(machine, run_states.Hung) and machine.blocked:
        hang_check.on_freed(builder, machine)
        return
    _follow_pause(builder)
    if sample.asks is not None or builder.state.watch.asks_since is not None:
        hang_check.check_question(builder, sample)
    hang_check.check_hang(builder)


def _sampled(builder: StepBuilder) -> bool:
    """Take the time of a sample; whether the run is watched. A time without any reading is none without progress."""
    state, watched = builder.state, run_states.is_watched(builder.machine)
    last = max(state.watch.liveness.process_at or 0.0, state.watch.liveness.gpu_at or 0.0)
    unseen_s = builder.now - last if watched and last > 0.0 else 0.0
    if unseen_s > pauses.longest_gap(state.time.period_s):
        builder.change("watch.peak", at=state.watch.peak.at + unseen_s)
    builder.set(time=pauses.sampled(state.time))
    return watched


def _close_vram(builder: StepBuilder) -> None:
    """Close warnings of GPU memory: it is judged only while a trainer runs."""
    found = [i.class_ for i in builder.state.journal.incidents if i.kind == "health" and i.class_.endswith(".vram")]
    if found:
        bands = {name: band for name, band in builder.state.health.bands.items() if not name.endswith(".vram")}
        builder.change("health", bands=bands)
        builder.close_all("the trainer has ended", *found)


def _take_levels(builder: StepBuilder, values: Iterator[tuple[str, float]]) -> None:
    """Take values of metrics: those that changed their level are told."""
    state = builder.state
    table = metrics(builder.settings.health, stable=state.policy.profile == "stable")
    bands, changes = findings.take(state.health.bands, values, table, builder.t)
    if bands is not state.health.bands:
        builder.change("health", bands=bands)
    for change in changes:
        builder.fact(change.fact)
        metric, level = change.fact.metric, change.fact.level
        kind: IncidentKind = "disk" if metric == "disk_free" else "health"
        known = next((i for i in builder.state.journal.incidents if i.kind == kind and i.class_ == metric), None)
        if change.alarm and known is None:
            number = builder.warn(kind, metric, change.alarm)
            if kind == "health" and level == "danger" and metric.endswith(SAVE_METRICS):
                attempts.on_danger(builder, change.alarm, number)
        elif known is not None and not change.alarm:
            builder.close_incident(known.id, f"{reading_name(metric)} is {level} again")


# The ranks of a distributed training: restarts of the workers by their launcher, and what ranks left at their end.


def _see_ranks(builder: StepBuilder, sample: observations.ProcessSample) -> None:
    """Take the ranks and their launchers of a sample, while the run is watched."""
    state = builder.state
    if not sample.ranks and not state.watch.ranks and not sample.agents:
        return
    found = pauses.with_processes(state.watch.ranks, sample.ranks, builder.t)
    known, again = pauses.with_sample(state.watch.launcher, state.watch.ranks, sample)
    most = max((agent.max_restarts or 0 for agent in known.agents), default=0)
    if most and not known.told:
        known = replace(known, told=True)
        builder.note(
            f"torchrun starts its workers again by itself, up to {most} times for each agent; "
            "trainwatch restarts when torchrun has ended, or when the run hangs"
        )
    builder.change("watch", ranks=found, launcher=known)
    if again and not isinstance(state.machine, run_states.Hung):
        _begin_again(builder, ", ".join(str(each) for each in again))


def _begin_again(builder: StepBuilder, who: str) -> None:
    """The launcher started its workers again: the same attempt, whose steps begin at a checkpoint again."""
    state, at = builder.state, builder.attempt.step
    close_quiet(builder, "torchrun started its workers again")
    builder.change("log", reading=replace(begin_attempt(state.log.reading), fold=state.log.reading.fold))
    builder.change("watch.launcher", from_step=at)
    builder.change("watch", clock=deadlines.begin_attempt(state.watch.clock, builder.now))
    after = "" if at is None else f" after step {at}"
    number = state.watch.launcher.restarts
    builder.note(f"torchrun started its workers again{after} (restart {number} by itself, none of trainwatch): {who}")


def on_first_step(builder: StepBuilder, printed: int | None) -> None:
    """The first step after a restart of the workers: say how far they went back.

    ``printed``: the first step that their log shows, None if it cannot be told; the newest one may be further on.
    """
    before, step = builder.state.watch.launcher.from_step, builder.attempt.step if printed is None else printed
    if before is None or step is None:
        return
    builder.change("watch.launcher", from_step=None)
    lost = max(0, before - step + 1)
    builder.note(f"the workers go on at step {step}: {lost} step{'s' * (lost != 1)} are made again")


def on_rank_ended(builder: StepBuilder, ended: observations.RankEnded) -> None:
    """Take what a rank left: evidence of the cause, also if its output is not in the log."""
    state = builder.state
    if not run_states.is_watched(state.machine) and not isinstance(state.machine, run_states.Queued):
        return
    lines = [line for line in ended.text.splitlines() if line.strip()]
    last = lines[-1].strip() if lines else ""
    process = "" if ended.pid is None else f" (pid {ended.pid}{f' on {ended.node}' if ended.node else ''})"
    builder.note(f"rank {ended.rank}{process} ended: {beginning(last, 200)}")
    shown = "\n".join((state.log.diagnosis.tail, *(each.text for each in state.log.diagnosis.findings)))
    if last and last not in shown:
        text = "".join(f"[rank{ended.rank}]: {line}\n" for line in lines)
        log = state.log
        apart = replace(log.diagnosis, fold=replace(log.diagnosis.fold, rest=""))
        found, _ = read_log(apart, replace(log.reading, fold=apart.fold), text, builder.catalogue)
        builder.change("log", diagnosis=replace(found, fold=log.diagnosis.fold))


# What the scheduler says of the job that the attempt runs as: while it waits in the queue, time does not count.
#
# An answer that does not come is no end and no hang. A job that waits for a reason that never ends by itself is told.

UNSCHEDULABLE = "unschedulable"
"""Class of the incident (kind ``stall``)."""


def on_job(builder: StepBuilder, seen: observations.JobSeen) -> None:
    """Take what is known of the job."""
    exits.note_job(builder, seen)
    machine = builder.machine
    runs = isinstance(machine, run_states.Running) or (isinstance(machine, run_states.Starting) and machine.launched)
    if seen.phase == "queued" and runs:
        reason = f" ({seen.reason})" if seen.reason else ""
        _stop_time(builder, "queue", run_states.Queued(), f"job {seen.job} is {seen.state or 'PENDING'}{reason}")
    elif isinstance(machine, run_states.Queued) and seen.phase in {"running", "ending", "ended"}:
        awake(builder, f"job {seen.job} runs{f' on {seen.nodes}' if seen.nodes else ''}")
    _tell_unschedulable(builder, seen)
    exits.check(builder)


def _stop_time(builder: StepBuilder, event: run_states.Event, machine: run_states.Machine, reason: str) -> None:
    """Time does not count until ``awake``."""
    builder.change("time", stopped=True)
    builder.change("watch.clock", last=builder.now)
    close_quiet(builder, reason)
    builder.move(event, machine, reason)


def _tell_unschedulable(builder: StepBuilder, seen: observations.JobSeen) -> None:
    change = never_ends(seen.reason) if seen.phase == "queued" else None
    if change is not None and builder.open_of(UNSCHEDULABLE) is None:
        anew = f"with changed settings `{typed('restart', builder.knowledge.run)}` submits it anew"
        what = f"job {seen.job} waits for {seen.reason}, which does not end by itself: {change}; {anew}"
        builder.warn("stall", UNSCHEDULABLE, what, title="its job cannot start")
    elif seen.phase != "unknown" and change is None:
        builder.close_all("it does not wait for that any more", UNSCHEDULABLE)


# A trainer that began beside a live attempt and writes where it writes: people are told, and nothing is ended for it.
#
# Source: a training that was started by hand a second time in its folder, while the first one ran: checkpoints of both
# lay there under the same names. Known false alarms: a command that takes its output folder from the environment, so
# that two of the same command write to two folders.

TITLE = "another trainer writes there"


def on_other_trainers(builder: StepBuilder, seen: observations.OtherTrainersSeen) -> None:
    """Open the incident, keep its evidence up to date, or close it."""
    known = builder.open_of(OTHER_TRAINER)
    if not seen.trainers:
        builder.close_all("the other trainer is over: what it wrote is still there", OTHER_TRAINER)
    elif run_states.is_live(builder.machine):
        first, more = seen.trainers[0], len(seen.trainers) - 1
        since = f", since {first.began}" if first.began else ""
        who = f"another trainer (pid {first.pid}{since})" + (f" and {plural(more, 'other')}" if more else "")
        reason = f"{who} writes to {first.folder or 'the same output folder'}, too"
        pids, stop = " ".join(str(each.pid) for each in seen.trainers), builder.typed("stop")
        advice = (
            f"`{first.command}` was started without trainwatch beside this attempt; each may overwrite what "
            f"the other saves: end one (`kill {pids}` or `{stop}`)"
        )
        told: dict[str, Any] = {"reason": reason, "evidence": tuple(_evidence(seen.trainers)), "explanation": advice}
        if known is None:
            number = builder.open_incident("checkpoint", OTHER_TRAINER, title=TITLE, **told)
            builder.notify("warning", TITLE, f"{reason}; {advice}", incident=number)
        elif (known.reason, known.evidence) != (reason, told["evidence"]):
            builder.update_incident(known.id, **told)
            if known.reason != reason:
                builder.note(reason)


def _evidence(trainers: Sequence[observations.OtherTrainer]) -> Iterator[Evidence]:
    for each in trainers[:SHOWN]:
        since = f", since {each.began}" if each.began else ""
        what = "the command of this run" if each.same == "training" else "the script of this run with other options"
        yield Evidence(what=f"pid {each.pid}{since}, in {each.cwd}: {each.command}; it runs {what}")
        shared = "both have open for writing" if each.shared else f"pid {each.pid} has open for writing"
        files, more = each.shared or each.files, len(each.shared or each.files) - SHOWN
        names = ", ".join(files[:SHOWN]) + (f" and {more} more" if more > 0 else "")
        yield Evidence(what=f"{shared}: {names or 'no file there at this moment'}")


# A trainer that was stopped by a signal that is not ours: the run is *suspended* until somebody continues it.
#
# Time does not count meanwhile, so that nothing is ended. The incident opens as soon as the processes that compute are
# known to be stopped for good, else after ``hang.min_s``; only then people are notified. Known false alarms: none that
# ends anything; a helper that used more CPU than the trainer itself looks like a pause, until the next step.


def _follow_pause(builder: StepBuilder) -> None:
    """Suspend the run, notify people of it, or go on."""
    pause, machine = builder.state.watch.pause, builder.machine
    if pause.stopped != "all" or pause.since_t is None:
        if isinstance(machine, run_states.Suspended):
            awake(builder, "the trainer was continued")
        builder.close_all("it was continued", SUSPENDED)
    elif isinstance(machine, run_states.Starting | run_states.Running):
        _stop_time(builder, "suspend", run_states.Suspended(), "a signal stopped every computing process (state T)")
    elif isinstance(machine, run_states.Suspended):
        stopped_s, min_s = builder.t - pause.since_t, builder.settings.hang.min_s
        how = f"`{builder.typed('resume')}` (or `kill -CONT PID`) lets it go on"
        reason = f"a signal that is not from trainwatch stopped the trainer (state T): {how}"
        if builder.open_of(SUSPENDED) is None and stopped_s >= (min(LASTS_S, min_s) if pause.sure else min_s):
            builder.open_incident("stall", SUSPENDED, reason, severity="warning", detect_s=stopped_s)
        known = builder.open_of(SUSPENDED)
        told_t = builder.state.journal.warned.get(f"stall:{SUSPENDED}", -1.0)
        new = known is not None and known.t >= pause.since_t > told_t and not builder.warned_lately("stall", SUSPENDED)
        if known is not None and new and stopped_s >= min_s:
            builder.notify_of("stall", SUSPENDED, "stopped by a signal", reason, known.id)
