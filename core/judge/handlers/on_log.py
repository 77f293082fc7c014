"""Chunks of the trainer's log: steps (heartbeats), phases, losses, and lines that show later why it ended."""

import msgspec

from ...model.attempt import DIVERGING
from ...model.fact import PhaseChanged, SaveMeasured
from ...model.observation import HEARTBEAT, LogChunk
from ...model.progress import Progress
from ...model.record import Entry
from .. import attempt_progress
from ..failure.evidence_state import DiagnosisState
from ..failure.log_evidence import read_evidence
from ..findings import loss, pace, slow
from ..findings import loss as loss_trend
from ..hang import activity, deadlines, liveness, pauses, phase_times, ranks
from ..hang import pauses as active_time
from ..hang.deadlines import NO_SAVE
from ..knowledge import Knowledge
from ..progress import START, ProgressState, after_gap, read_progress
from ..recovery import nan_rollback, remedy_proof, restarts
from ..recovery.attempts import progress_made
from ..resume import save_overdue
from ..run_states import Hung, Queued, Running, Stopping, Suspended, is_watched
from ..state import NOTHING, JudgeState, Result, StepBuilder
from ..text.lines import LineFold
from ..text.reading import Reading
from . import hints, on_samples
from . import hints as no_step
from . import hints as rate_advice
from .hang_check import check_hang

replace = msgspec.structs.replace

JOURNAL_S = 30.0
"""How often progress is written into the journal, besides every change of phase."""
JOURNAL_STOPPING_S = 5.0
"""The same while the trainer is being ended, because people wait for it."""


def on_log(knowledge: Knowledge, state: JudgeState, chunk: LogChunk) -> Result:
    """Take a chunk of log, also of an attempt that is being ended, as it may show the cause.

    Lines show that a job has begun before the queue is asked again: they are read, and time begins with its answer.
    """
    source = chunk.source
    if not is_watched(state.machine):
        if not isinstance(state.machine, Stopping | Queued) or not (source is None or _is_read(state, source)):
            return state, NOTHING
        if isinstance(state.machine, Queued):
            state = _with_names(knowledge, state, chunk)
        return _unjudged(knowledge, state, chunk)
    state = _with_names(knowledge, state, chunk)
    before = state.reading if source is None or _is_read(state, source) else state.other_logs.get(source, START)
    if chunk.skipped_bytes:
        before = after_gap(before)
        gap = LineFold(lines=state.diagnosis.fold.lines)
        state = replace(state, diagnosis=replace(state.diagnosis, fold=gap)) if source is None else state
    after = read_progress(before, chunk.text, knowledge.shapes)
    found = state.diagnosis if source is not None else _evidence(knowledge, state, chunk.text)
    now = active_time.now(state.time)
    beats = after.certain.heartbeats - before.certain.heartbeats
    before_all = state.reading.certain.heartbeats
    if source is not None:
        state = replace(state, other_logs={**state.other_logs, source: after})
    if source == HEARTBEAT:
        state = replace(state, beating=True, reads_beats=state.reads_beats or state.reading.certain.heartbeats == 0)
    elif source is None and beats > 0:
        state = replace(state, reads_beats=False, reads_log=None)
    elif beats > 0 and state.reads_log is None and not state.reads_beats and before_all == 0:
        state = replace(state, reads_log=source)
    shown = source is None or _is_read(state, source)
    if beats <= 0:
        phase = after.phase if source in {None, HEARTBEAT} else state.log_activity.phase
        log = activity.with_text(state.log_activity, phase, chunk.text, now, alive=_was_alive(state, now))
        changed = phase != state.log_activity.phase
        if changed and log.trusted:
            state = _phase_ended(state, now)
        state = replace(state, reading=after if shown else state.reading, diagnosis=found, log_activity=log)
        entries = NOTHING
        if source is None and state.unread.saves:
            state, entries = _unread(knowledge, state, chunk.text)
        if after.loss_is_nan:
            state, entries = _nan(knowledge, state, entries, after.now)
        if changed and shown:
            state, more = _write_progress(knowledge, state, changed=True)
            return state, (*entries, *more)
        return check_hang(knowledge, state, entries)
    return _on_beat(knowledge, replace(state, diagnosis=found), chunk, after)


def _unread(knowledge: Knowledge, state: JudgeState, text: str) -> Result:
    """Take output without a step of an attempt that has saved a checkpoint."""
    builder = StepBuilder(knowledge, state)
    no_step.on_text(builder, text)
    return builder.state, tuple(builder.entries)


def _is_read(state: JudgeState, source: str | None) -> bool:
    """Whether the progress of the run is what it tells, because the trainer's output shows no steps."""
    return (source == HEARTBEAT and state.reads_beats) or (source is not None and source == state.reads_log)


def _with_names(knowledge: Knowledge, state: JudgeState, chunk: LogChunk) -> JudgeState:
    """The state with what the text names: the checkpoint it resumed from, settings of a remedy, ranks."""
    if state.attempt.resume_verdict == "open":
        state = restarts.note_name_in_log(state, chunk.text)
    if chunk.source is None:
        state = remedy_proof.read(knowledge, state, chunk.text)
    found = ranks.with_text(state.ranks, chunk.text, state.time.t)
    return state if found is state.ranks else replace(state, ranks=found)


def _unjudged(knowledge: Knowledge, state: JudgeState, chunk: LogChunk) -> Result:
    """Follow a trainer that was asked to end, or whose job is said to wait: progress and evidence are kept, no more."""
    before, after = state.reading, read_progress(state.reading, chunk.text, knowledge.shapes)
    state = replace(state, reading=after, diagnosis=_evidence(knowledge, state, chunk.text))
    t = state.time.t
    if after.certain.heartbeats > before.certain.heartbeats:
        first = after.certain.opening.first_step
        kept = attempt_progress.with_beat(
            state.attempt, after.progress.run_step, t, epoch=after.progress.epoch, first_step=first
        )
        state = replace(state, attempt=kept)
    changed = after.phase != before.phase
    if changed or (after.progress != before.progress and t - (state.progress_t or 0.0) >= JOURNAL_STOPPING_S):
        return _write_progress(knowledge, state, changed=changed)
    return state, NOTHING


def _was_alive(state: JudgeState, now: float) -> bool:
    """Return whether a step or another sign of life was seen just before, or nothing can be seen at all."""
    margin_s = 2.0 * (state.time.period_s or 0.0) + 2.0 * (state.clock.slow_s or 0.0)
    return liveness.was_alive(state.liveness, state.clock.last, now, margin_s)


def _evidence(knowledge: Knowledge, state: JudgeState, text: str) -> DiagnosisState:
    return read_evidence(state.diagnosis, text, knowledge.catalogue)


def _on_beat(knowledge: Knowledge, state: JudgeState, chunk: LogChunk, after: ProgressState) -> Result:
    """Take a chunk with a heartbeat."""
    t = state.time.t
    now = active_time.now(state.time)
    progress = after.progress
    step = progress.run_step
    steps = 1
    if step is not None and state.attempt.step is not None:
        steps = max(1, step - state.attempt.step)
    phase = progress.phase
    announced = bool(state.log_activity.announced) or state.saving.took_s > deadlines.PAUSE_FLOOR_S
    before_means = state.clock.means
    clock = deadlines.beat(state.clock, now, steps, knowledge.settings.hang.warmup_steps, announced=announced)
    first = state.clock.beats == 0
    if first and not state.attempt.adopted:
        lasted = phase_times.started(
            state.phase_times, now - state.clock.start, liveness.silence(state.liveness, state.clock.last)
        )
        state = replace(state, phase_times=lasted)
    if announced:
        state = _phase_ended(state, now)
    phase_changed = phase != state.log_activity.phase
    usual_s = None if state.clock.step_s is None else steps * state.clock.step_s
    cost, measured = pace.with_saved_step(state.save_cost, t, usual_s)
    state = replace(
        state,
        save_cost=cost,
        reading=after if chunk.source is None or _is_read(state, chunk.source) else state.reading,
        clock=clock,
        attempt=attempt_progress.with_beat(
            state.attempt, step, t, epoch=progress.epoch, first_step=after.certain.opening.first_step
        ),
        liveness=liveness.with_step(state.liveness, state.clock.last, announced=announced or first),
        log_activity=activity.with_step(state.log_activity, phase, chunk.text, now),
        pause=pauses.with_step(state.pause, t),
        saving=NO_SAVE,
        peak=_peak(state, step, progress, now),
        loss=_with_loss(state, progress, t),
        pace=_measured(state, step, now),
    )
    entries: tuple[Entry, ...] = NOTHING
    if measured is not None:
        number = state.attempt.number
        entries = (SaveMeasured(attempt=number, cost_s=measured.cost_s, every_s=measured.every_s),)
    again = state.launcher.from_step is not None
    checks = first or state.attempt.resume_verdict == "open"
    over = no_step.is_over(state) or not isinstance(state.machine, Running)
    if over or again or checks or restarts.is_due(state):
        builder = StepBuilder(knowledge, state)
        _advance(builder)
        if again:
            on_samples.on_first_step(builder)
        _check_resume(builder, checks=checks)
        state, entries = builder.state, (*entries, *builder.entries)
    if after.loss_is_nan:
        state, entries = _nan(knowledge, state, entries, after.now)
    if clock.means is not before_means and clock.means:
        state, entries = _pace(knowledge, state, entries)
    if state.attempt.nan_t is not None and progress.loss is not None:
        state, entries = _finite_again(knowledge, state, entries)
    if progress.loss is not None:
        state, entries = _on_loss(knowledge, state, entries)
    if phase_changed or state.progress_t is None or t - state.progress_t >= JOURNAL_S:
        state, more = _write_progress(knowledge, state, changed=phase_changed)
        state, entries = _check_pace_and_saves(knowledge, state, (*entries, *more))
    return state, entries


def _measured(state: JudgeState, step: int | None, now: float) -> pace.Pace:
    """``state``: before the beat."""
    if step is None:
        return state.pace
    take = pace.with_step if state.clock.behind_from is None else pace.begin_stretch
    return take(state.pace, step, now)


def _check_resume(builder: StepBuilder, *, checks: bool) -> None:
    """Whether a resume took effect, and its loss goes on. ``checks``: its first steps have not shown it yet."""
    if checks:
        restarts.on_beat(builder)
        remedy_proof.on_beat(builder)
    if restarts.is_due(builder.state):
        restarts.compare(builder)


def _advance(builder: StepBuilder) -> None:
    """Go on to the state *running*. The steps of a loop, which it makes for ever, do not show that its hang is over."""
    state = builder.state
    if no_step.is_over(state):
        no_step.on_step(builder)
    if isinstance(state.machine, Hung):
        if active_time.now(state.time) - state.peak.at >= builder.knowledge.settings.hang.max_s:
            return
        builder.close_incident(state.machine.incident, "the step advanced again by itself")
    if not isinstance(state.machine, Running | Suspended | Queued):
        builder.move("step", Running(), "training advances")


def _peak(state: JudgeState, step: int | None, progress: Progress, now: float) -> deadlines.StepPeak:
    """Return the highest step of this attempt. The time of an evaluation or a save before a step does not count."""
    peak = deadlines.with_step(state.peak, step, progress, now)
    last = state.clock.last
    works = max(state.liveness.file_at or 0.0, state.log_activity.work_bar_at) > last
    return deadlines.excuse(peak, now - last) if peak is state.peak and works else peak


def _check_pace_and_saves(knowledge: Knowledge, state: JudgeState, entries: tuple[Entry, ...]) -> Result:
    """Check whether steps are slow or a checkpoint is overdue, if checkpoints are watched at all."""
    if knowledge.preset.name in hints.STEP_S:
        builder = StepBuilder(knowledge, state)
        hints.on_steps(builder)
        state, entries = builder.state, (*entries, *builder.entries)
    if knowledge.output_dir is None and not state.outputs.known and state.saves.last is None:
        return state, entries
    late = save_overdue.overdue(state.saves, active_time.now(state.time), state.clock.start)
    if late is None or any(i.class_ == save_overdue.MISSING for i in state.incidents):
        return state, entries
    builder = StepBuilder(knowledge, state)
    builder.warn(
        "checkpoint", save_overdue.MISSING, f"{late}: is there room, and does the trainer save where it should?"
    )
    return builder.state, (*entries, *builder.entries)


def _phase_ended(state: JudgeState, now: float) -> JudgeState:
    """Learn how long the phase that ends now took."""
    log = state.log_activity
    if not log.trusted or (log.phase not in activity.ANNOUNCED and log.phase != "save"):
        return state
    quiet_s = liveness.silence(state.liveness, state.clock.last)
    return replace(state, phase_times=phase_times.ended(state.phase_times, log.phase, now - log.phase_at, quiet_s))


def _write_progress(knowledge: Knowledge, state: JudgeState, *, changed: bool) -> Result:
    """Write progress into the journal."""
    made = progress_made(knowledge, state)
    state = replace(state, progress_t=state.time.t)
    if not changed:
        return state, (made,)
    return state, (PhaseChanged(attempt=state.attempt.number, phase=state.progress.phase), made)


def _nan(knowledge: Knowledge, state: JudgeState, entries: tuple[Entry, ...], read: Reading) -> Result:
    """The newest printed loss is NaN: warn once, and act if it stays NaN."""
    builder = StepBuilder(knowledge, state)
    if state.attempt.nan_t is None:
        builder.set(attempt=replace(state.attempt, nan_t=nan_rollback.began_t(state, read)))
        first = nan_rollback.first_step(read)
        at = "" if first is None else f" at step {first}"
        what, average = "the loss is not a number", read.losses.is_average
        if average:
            what = "the average loss is not a number (one skipped step is enough for that)"
        builder.warn("loss", "nan", f"{what}{at}", step=first, average=average)
    nan_rollback.on_nan_steps(builder, read)
    return builder.state, (*entries, *builder.entries)


def _finite_again(knowledge: Knowledge, state: JudgeState, entries: tuple[Entry, ...]) -> Result:
    """Close the warning: a bad step that was skipped does no harm."""
    builder = StepBuilder(knowledge, replace(state, attempt=replace(state.attempt, nan_t=None)))
    for incident in state.incidents:
        if incident.kind == "loss" and incident.class_ != DIVERGING:
            builder.close_incident(incident.id, "the loss is a number again")
    return builder.state, (*entries, *builder.entries)


def _pace(knowledge: Knowledge, state: JudgeState, entries: tuple[Entry, ...]) -> Result:
    """Compare the newest block of the step clock with the usual pace."""
    before, clock = state.stall, state.clock
    after = slow.with_block(before, clock.means[-1], max(clock.means[-1], deadlines.BLOCK_S), state.liveness.util_pct)
    state = replace(state, stall=after)
    if after.open == before.open:
        return state, entries
    builder = StepBuilder(knowledge, state)
    if after.open:
        reason = slow.describe_slow(after, clock, state.liveness)
        name = slow.classify_slow(state.liveness, state.bands)
        advice = hints.advice(builder, "slow") if name == "slow" else ""
        builder.warn("stall", name, f"{reason}{advice}", title=f"slow ({name})")
    else:
        for incident in state.incidents:
            if incident.class_ in slow.CLASSES:
                builder.close_incident(incident.id, "as fast as usual again")
    return builder.state, (*entries, *builder.entries)


def _with_loss(state: JudgeState, progress: Progress, t: float) -> loss.Loss:
    if progress.loss is None:
        return state.loss
    position = None if progress.run_step is None else (state.attempt.offset or 0) + progress.run_step
    return loss.with_loss(state.loss, progress.loss, t, position)


def _on_loss(knowledge: Knowledge, state: JudgeState, entries: tuple[Entry, ...]) -> Result:
    """What the newest loss shows, together with those before it."""
    seen = state.loss
    if loss.is_spike(seen) and not seen.diverges:
        state, entries = _spike(knowledge, state, entries)
    if seen.long.fresh:
        state, entries = _trend(knowledge, state, entries)
    if seen.diverges != any(i.class_ == DIVERGING for i in state.incidents):
        state, entries = _diverged(knowledge, state, entries)
    return state, entries


def _spike(knowledge: Knowledge, state: JudgeState, entries: tuple[Entry, ...]) -> Result:
    builder = StepBuilder(knowledge, state)
    progress = state.progress
    trend = f"{state.loss.trend:.3g}" if state.loss.trend is not None else "its trend"
    reason = f"the loss is {progress.loss:.3g}, far above {trend}"
    if not builder.warned_lately("loss", "spike"):  # a loss that wavers about the bound is reported once
        builder.warn("loss", "spike", reason, ending="reported")
    return builder.state, (*entries, *builder.entries)


def _diverged(knowledge: Knowledge, state: JudgeState, entries: tuple[Entry, ...]) -> Result:
    """The loss diverged, or came back: the incident is open as long as it lasts."""
    builder = StepBuilder(knowledge, state)
    seen = state.loss
    if not seen.diverges:
        for incident in state.incidents:
            if incident.class_ == DIVERGING:
                builder.close_incident(incident.id, "the loss is near its lowest again")
    elif loss.has_another_aim(state.diagnosis.tail):
        return state, entries
    else:
        nan_rollback.on_divergence(builder)
    state, made = _write_progress(knowledge, builder.state, changed=False)  # with the floor
    return state, (*entries, *builder.entries, *made)


def _trend(knowledge: Knowledge, state: JudgeState, entries: tuple[Entry, ...]) -> Result:
    builder = StepBuilder(knowledge, state)
    long = state.loss.long
    found = rate_advice.rate_options(builder)
    reason = f"{loss_trend.describe_trend(long)}{rate_advice.describe(builder, found)}"
    if long.finding == DIVERGING and state.loss.diverges:
        return state, entries  # an incident of its own, which lasts
    if long.finding == DIVERGING:
        number = builder.warn("loss", DIVERGING, reason, ending="reported")
    else:
        number = builder.open_incident("loss", long.finding or "", reason, severity="info", ending="reported")
    rate_advice.propose(builder, found, loss_trend.describe_trend(long), number)
    return builder.state, (*entries, *builder.entries)
