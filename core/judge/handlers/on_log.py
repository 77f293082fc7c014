"""Chunks of the trainer's log: steps (heartbeats), phases, losses, and lines that show later why it ended."""

from functools import partial

from msgspec.structs import replace

from ...model.fact import PhaseChanged
from ...model.observation import HEARTBEAT, LogChunk
from ...model.run import DIVERGING, NO_STEP
from .. import findings, slow
from ..failure.diagnosis import read_log
from ..hang import deadlines, liveness, pauses
from ..hang.deadlines import SavePhase
from ..progress import START, ProgressState, after_gap, read_progress, with_beat
from ..recovery import apply, restarts
from ..recovery.attempts import progress_made
from ..run_states import Hung, Queued, Running, Stopping, Suspended, is_watched
from ..scales import BUSY_S, HALF_MINUTE_S, LASTS_S
from ..state import JudgeState, StepBuilder
from ..text.lines import LineFold
from ..text.reading import Reading
from . import hang_check, hints, on_checkpoints, on_samples


def on_log(builder: StepBuilder, chunk: LogChunk) -> None:
    """Take a chunk of log, also of an attempt that is being ended, as it may show the cause.

    Lines show that a job has begun before the queue is asked again: they are read, and time begins with its answer.
    """
    machine = builder.machine
    if chunk.source is None and chunk.unread != builder.state.log.unread:  # what was not read is no silence
        builder.change("log", unread=chunk.unread)
        builder.set(watch=deadlines.after_gap(builder.state.watch, builder.now))
        builder.change("watch.peak", at=builder.now)
    if not (chunk.text or chunk.skipped_bytes):
        return
    if is_watched(machine) or (isinstance(machine, Stopping | Queued) and _is_read(builder.state, chunk.source)):
        if not isinstance(machine, Stopping):  # it names the checkpoint it resumed from, settings of a remedy, ranks
            if builder.attempt.resume_verdict == "open":
                builder.state = restarts.note_name_in_log(builder.state, chunk.text)
            if chunk.source is None:
                builder.state = hints.read_settings(builder.knowledge, builder.state, chunk.text)
            found = pauses.with_text(builder.state.watch.ranks, chunk.text, builder.t)
            if found is not builder.state.watch.ranks:
                builder.change("watch", ranks=found)
        _read(builder, chunk)
    if builder.state.saved.outputs.seen:
        on_checkpoints.on_lines(builder, chunk.text)


def _read(builder: StepBuilder, chunk: LogChunk) -> None:
    state, source = builder.state, chunk.source
    before = state.log.reading if _is_read(state, source) else state.log.other_logs.get(source or "", START)
    diagnosis = state.log.diagnosis
    if chunk.skipped_bytes:
        before = after_gap(before)
        diagnosis = replace(diagnosis, fold=LineFold(lines=diagnosis.fold.lines))
    told = None if builder.knowledge.line_read is None else partial(builder.knowledge.line_read, source)
    if source is None:
        diagnosis, after = read_log(diagnosis, before, chunk.text, builder.catalogue, told=told)
        builder.change("log", diagnosis=diagnosis)
    else:
        after = read_progress(before, chunk.text, builder.catalogue.shapes, told=told)
    beats = after.certain.heartbeats - before.certain.heartbeats
    if source is None and beats > 0 and (state.log.reads_beats or state.log.reads_log is not None):
        builder.change("log", reads_beats=False, reads_log=None)
    elif source is not None:
        silent = state.log.reading.certain.heartbeats == 0
        builder.change("log", other_logs={**state.log.other_logs, source: after})
        if source == HEARTBEAT:
            builder.change("log", beating=True, reads_beats=state.log.reads_beats or silent)
        elif beats > 0 and state.log.reads_log is None and not state.log.reads_beats and silent:
            builder.change("log", reads_log=source)
    if _is_read(builder.state, source):
        builder.change("log", reading=after)
    if not is_watched(builder.machine):
        _keep(builder, before, after)
    elif beats > 0:
        _on_beat(builder, chunk, after)
    else:
        _on_text(builder, chunk, after)


def _is_read(state: JudgeState, source: str | None) -> bool:
    """Whether the progress of the run is what this log tells: the trainer's output, or another one if that has none."""
    return source is None or (source == HEARTBEAT and state.log.reads_beats) or source == state.log.reads_log


def _on_text(builder: StepBuilder, chunk: LogChunk, after: ProgressState) -> None:
    """Take a chunk without a heartbeat."""
    state, source, before = builder.state, chunk.source, builder.state.watch.log_activity
    phase = after.phase if source in {None, HEARTBEAT} else before.phase
    margin_s = 2.0 * (state.time.period_s or 0.0) + 2.0 * (state.watch.clock.slow_s or 0.0)
    alive = liveness.was_alive(state.watch.liveness, state.watch.clock.last, builder.now, margin_s)
    log = liveness.with_text(before, phase, chunk.text, builder.now, alive=alive)
    changed = phase != before.phase
    if changed and log.trusted:
        _phase_ended(builder)
    builder.change("watch", log_activity=log)
    if after.now.loss_is_nan:
        _nan(builder, after.now)
    if changed and _is_read(state, source):
        _write_progress(builder, changed=True)
    else:
        hang_check.check_hang(builder)


def _keep(builder: StepBuilder, before: ProgressState, after: ProgressState) -> None:
    """Follow a trainer that was asked to end, or whose job is said to wait: progress and evidence are kept, no more."""
    state, t = builder.state, builder.t
    if after.certain.heartbeats > before.certain.heartbeats:
        first, epoch = after.certain.opening.first_step, after.progress.epoch
        kept = with_beat(state.attempt, after.progress.run_step, t, epoch=epoch, first_step=first)
        builder.set(attempt=kept)
    changed = after.phase != before.phase
    # People wait for the end of a trainer that is being ended.
    if changed or (after.progress != before.progress and t - (state.log.progress_t or 0.0) >= BUSY_S):
        _write_progress(builder, changed=changed)


def _on_beat(builder: StepBuilder, chunk: LogChunk, after: ProgressState) -> None:
    """Take a chunk with a heartbeat."""
    state, t, progress = builder.state, builder.t, after.progress
    step, phase, first_step = progress.run_step, progress.phase, after.certain.opening.first_step
    clock, first = state.watch.clock, state.watch.clock.beats == 0
    _watch(builder, chunk, after)
    dated, seen_t = chunk.written_t is not None, t if chunk.written_t is None else min(t, chunk.written_t)
    builder.set(
        attempt=with_beat(
            state.attempt, step, seen_t, read_t=min(t, chunk.t), epoch=progress.epoch, first_step=first_step
        )
    )
    if step is not None:
        take_step = findings.with_step if clock.behind_from is None and not dated else findings.begin_stretch
        builder.change("course", pace=take_step(state.course.pace, step, builder.now))
    if progress.loss is not None:
        position = None if step is None else (state.attempt.offset or 0) + step
        builder.change("course", loss=findings.with_loss(state.course.loss, progress.loss, t, position))
    if state.course.saves_unread or state.journal.incidents or not isinstance(state.machine, Running):
        _advance(builder)
    if state.watch.launcher.from_step is not None:
        on_samples.on_first_step(builder, first_step)
    if first or state.attempt.is_unplaced or builder.attempt.resume_verdict == "open":
        restarts.on_beat(builder)
        hints.prove_remedies(builder)
    if restarts.is_due(builder.state):
        restarts.compare(builder)
    if after.now.loss_is_nan:
        _nan(builder, after.now)
    means = builder.state.watch.clock.means
    if means is not clock.means and means:
        _pace(builder)
    if progress.loss is not None:
        if builder.attempt.nan_t is not None:
            # A bad step that was skipped does no harm.
            builder.change("attempt", nan_t=None)
            classes = [i.class_ for i in builder.state.journal.incidents if i.kind == "loss" and i.class_ != DIVERGING]
            builder.close_all("the loss is a number again", *classes)
        _on_loss(builder, state.course.loss.long.finding)
    changed, told_t = phase != state.watch.log_activity.phase, state.log.progress_t
    if changed or told_t is None or t - told_t >= HALF_MINUTE_S:
        _write_progress(builder, changed=changed)
        hints.on_steps(builder)
        saves = builder.state.course.saves  # are checkpoints watched at all?
        if builder.knowledge.output_dir is not None or builder.state.saved.outputs.known or saves.last is not None:
            late = slow.overdue(saves, builder.now, builder.state.watch.clock.start)
            if late is not None and builder.open_of(slow.MISSING) is None:
                what = f"{late}: is there room, and does the trainer save where it should?"
                builder.warn("checkpoint", slow.MISSING, what)


def _watch(builder: StepBuilder, chunk: LogChunk, after: ProgressState) -> None:
    """Remember of a heartbeat what tells whether the run hangs."""
    attempt, watch, now, progress = builder.attempt, builder.state.watch, builder.now, after.progress
    step, clock, seen = progress.run_step, watch.clock, watch.liveness
    first = clock.beats == 0
    announced = bool(watch.log_activity.announced) or watch.saving.took_s > deadlines.PAUSE_FLOOR_S
    if first and not attempt.adopted:
        quiet_s = liveness.silence(seen, clock.last)
        builder.change("watch", phase_times=pauses.learned(watch.phase_times, None, now - clock.start, quiet_s))
    if announced:
        _phase_ended(builder)
    works_at = max(seen.file_at or 0.0, watch.log_activity.work_bar_at)
    failed = watch.launcher.restarts > 0 or builder.state.log.diagnosis.since is not None
    fell = step is not None and attempt.step is not None and step < attempt.step
    apart = step == attempt.step and after.certain.main is not None  # a count below a bar, maybe one of epochs
    peak = deadlines.with_step(watch.peak, None if apart else step, progress, now, anew=fell and not failed)
    if peak is watch.peak and works_at > clock.last:  # an evaluation or a save before a step does not count
        peak = replace(peak, at=peak.at + (now - clock.last))
    steps = 1 if step is None or attempt.step is None else max(1, step - attempt.step)
    builder.change(
        "watch",
        clock=deadlines.beat(clock, now, steps, announced=announced, late=chunk.written_t is not None),
        liveness=liveness.with_step(seen, clock.last, announced=announced or first),
        log_activity=liveness.log_after_step(watch.log_activity, progress.phase, chunk.text, now),
        pause=pauses.with_step(watch.pause, builder.t),
        saving=SavePhase(),
        peak=peak,
    )


def _advance(builder: StepBuilder) -> None:
    """Go on to the state *running*. The steps of a loop, which it makes for ever, do not show that its hang is over."""
    state = builder.state
    if state.course.saves_unread:
        builder.change("course", saves_unread=())
    builder.close_all("a step is read", NO_STEP)
    if isinstance(state.machine, Hung):
        if builder.now - state.watch.peak.at >= builder.settings.hang.max_s:
            return
        builder.close_incident(state.machine.incident, "the step advanced again by itself")
    if not isinstance(state.machine, Running | Suspended | Queued):
        builder.move("step", Running(), "training advances")


def _phase_ended(builder: StepBuilder) -> None:
    """Learn how long the phase that ends now took."""
    state, log = builder.state, builder.state.watch.log_activity
    if log.trusted and (log.phase in liveness.ANNOUNCED or log.phase == "save"):
        quiet_s = liveness.silence(state.watch.liveness, state.watch.clock.last)
        lasted_s = builder.now - log.phase_at
        builder.change("watch", phase_times=pauses.learned(state.watch.phase_times, log.phase, lasted_s, quiet_s))


def _write_progress(builder: StepBuilder, *, changed: bool) -> None:
    """Write progress into the journal. ``changed``: the phase, too."""
    state = builder.state
    if changed:
        builder.fact(PhaseChanged(attempt=state.attempt.number, phase=state.progress.phase))
    builder.fact(progress_made(builder.knowledge, state))
    builder.change("log", progress_t=builder.t)


def _nan(builder: StepBuilder, read: Reading) -> None:
    """The newest printed loss is NaN: warn once, and act if it stays NaN."""
    attempt = builder.attempt
    if attempt.nan_t is None:
        builder.change("attempt", nan_t=apply.nan_began_t(builder.state, read))
        first = apply.nan_first_step(read)
        at = "" if first is None else f" at step {first}"
        what, average = "the loss is not a number", read.losses.is_average
        if average:
            what = "the average loss is not a number (one skipped step is enough for that)"
        builder.warn("loss", "nan", f"{what}{at}", step=first, average=average)
    apply.on_nan_steps(builder, read)


def _pace(builder: StepBuilder) -> None:
    """Compare the newest block of the step clock with the usual pace."""
    before, clock, seen = builder.state.course.stall, builder.state.watch.clock, builder.state.watch.liveness
    after = slow.with_block(before, clock.means[-1], max(clock.means[-1], LASTS_S), seen.util_pct)
    builder.change("course", stall=after)
    if after.open and not before.open:
        name = slow.classify_slow(seen, builder.state.health.bands)
        advice = hints.advice(builder, "slow") if name == "slow" else ""
        builder.warn("stall", name, f"{slow.describe_slow(after, clock, seen)}{advice}", title=f"slow ({name})")
    elif before.open and not after.open:
        builder.close_all("as fast as usual again", *slow.CLASSES)


def _on_loss(builder: StepBuilder, before: findings.Finding | None) -> None:
    """What the newest loss shows, together with those before it. ``before``: what they showed without it."""
    seen, state = builder.state.course.loss, builder.state
    if seen.is_spike and not seen.diverges and not builder.warned_lately("loss", "spike"):
        # A loss that wavers about the bound is reported once.
        trend = f"{seen.trend:.3g}" if seen.trend is not None else "its trend"
        builder.warn("loss", "spike", f"the loss is {state.progress.loss:.3g}, far above {trend}", ending="reported")
    if seen.long.finding not in {None, before}:
        hints.tell_trend(builder)
    told = builder.open_of(DIVERGING) is not None
    if told and not seen.diverges:
        builder.close_all("the loss is near its lowest again", DIVERGING)
    elif seen.diverges and not told and findings.OTHER_AIM.search(state.log.diagnosis.tail):
        builder.change("course.loss", lasting=False, high=0, long=replace(seen.long, finding=None, rises=0))
    elif seen.diverges:
        apply.on_divergence(builder)
    if told != (builder.open_of(DIVERGING) is not None):
        _write_progress(builder, changed=False)  # with the floor
