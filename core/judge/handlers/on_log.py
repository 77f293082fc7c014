"""The trainer's log: steps (heartbeats), phases, losses, and lines that will tell why it ended."""

import msgspec

from ...model.fact import PhaseChanged, ProgressMade
from ...model.observation import LogChunk
from ...model.record import Entry
from .. import attempt_progress
from ..failure.log_evidence import DiagnosisState, read_evidence
from ..findings import eta, loss, loss_trend, slow
from ..hang import active_time, liveness, log_activity, phase_times, step_clock
from ..knowledge import Knowledge
from ..progress.log_progress import START, ProgressState, read_progress
from ..recovery import restart_success
from ..resume import save_overdue
from ..run_machine import is_watched
from ..run_states import Hung, Running, Stopping
from ..state import NOTHING, JudgeState, Result
from ..step_builder import StepBuilder
from . import hints
from .hang_check import check_hang

replace = msgspec.structs.replace

TELL_S = 30.0
"""Progress is written down this often, and at every change of phase."""
TELL_ENDING_S = 5.0
"""The same while the trainer is being ended: people wait for it."""


def on_log(knowledge: Knowledge, state: JudgeState, chunk: LogChunk) -> Result:
    """Take a piece of log. What an attempt says while it is being ended still tells why it ended."""
    if not is_watched(state.machine):
        ending = isinstance(state.machine, Stopping) and chunk.source is None
        return _while_stopping(knowledge, state, chunk) if ending else (state, NOTHING)
    source = chunk.source
    if state.attempt.proof == "open":
        state = restart_success.heard_name(state, chunk.text)
    before = state.reading if source is None else state.other_logs.get(source, START)
    after = read_progress(before, chunk.text, knowledge.shapes)
    found = state.diagnosis if source is not None else _evidence(knowledge, state, chunk.text)
    now = active_time.now(state.time)
    beats = _settled_beats(after) - _settled_beats(before)
    if source is not None:
        state = replace(state, other_logs={**state.other_logs, source: after})
    if beats <= 0:
        phase = after.phase if source is None else state.log_activity.phase
        heard = log_activity.with_text(state.log_activity, phase, chunk.text, now, alive=_was_alive(state, now))
        changed = phase != state.log_activity.phase
        if changed and heard.trusted:
            state = _phase_ended(state, now)
        state = replace(state, reading=after if source is None else state.reading, diagnosis=found, log_activity=heard)
        if after.loss_is_nan and not before.loss_is_nan:
            return _nan(knowledge, state, NOTHING)
        if changed:
            return _tell(state, changed=True)
        return check_hang(knowledge, state, NOTHING)
    return _on_beat(knowledge, replace(state, diagnosis=found), chunk, after, before)


def _while_stopping(knowledge: Knowledge, state: JudgeState, chunk: LogChunk) -> Result:
    """A trainer that was asked to end trains on until it does: where it is stays known, and nothing is judged."""
    before, after = state.reading, read_progress(state.reading, chunk.text, knowledge.shapes)
    state = replace(state, reading=after, diagnosis=_evidence(knowledge, state, chunk.text))
    t = state.time.t
    if _settled_beats(after) > _settled_beats(before):
        state = replace(state, attempt=attempt_progress.with_beat(state.attempt, after.overall_step, t))
    changed = after.phase != before.phase
    if changed or (after.progress != before.progress and t - (state.progress_t or 0.0) >= TELL_ENDING_S):
        return _tell(state, changed=changed)
    return state, NOTHING


def _settled_beats(read: ProgressState) -> int:
    """Heartbeats, but of a line that is still being written only a bar's: half a line may read as another counter."""
    now, settled = read.now, read.settled
    if now.heartbeats != settled.heartbeats and now.counters[-1].name != "bar":
        return settled.heartbeats
    return now.heartbeats


def _was_alive(state: JudgeState, now: float) -> bool:
    """Return whether a step or another sign of life was seen just before, or nothing can be seen at all."""
    margin_s = 2.0 * (state.time.period_s or 0.0) + 2.0 * (state.clock.slow_s or 0.0)
    return liveness.was_alive(state.liveness, state.clock.last, now, margin_s)


def _evidence(knowledge: Knowledge, state: JudgeState, text: str) -> DiagnosisState:
    return read_evidence(state.diagnosis, text, knowledge.catalogue)


def _on_beat(
    knowledge: Knowledge, state: JudgeState, chunk: LogChunk, after: ProgressState, before: ProgressState
) -> Result:
    """The training advanced."""
    t = state.time.t
    now = active_time.now(state.time)
    progress = after.progress
    step = after.overall_step
    steps = 1
    if step is not None and state.attempt.step is not None:
        steps = max(1, step - state.attempt.step)
    phase = progress.phase
    announced = bool(state.log_activity.announced)
    before_means = state.clock.means
    clock = step_clock.beat(state.clock, now, steps, knowledge.settings.hang.warmup_steps, announced=announced)
    lost = state.loss if progress.loss is None else loss.with_loss(state.loss, progress.loss)
    first = state.clock.beats == 0
    if first and not state.attempt.adopted:
        lasted = phase_times.started(
            state.phase_times, now - state.clock.start, liveness.silence(state.liveness, state.clock.last)
        )
        state = replace(state, phase_times=lasted)
    if announced:
        state = _phase_ended(state, now)
    phase_changed = phase != state.log_activity.phase
    state = replace(
        state,
        reading=after if chunk.source is None else state.reading,
        clock=clock,
        attempt=attempt_progress.with_beat(state.attempt, step, t),
        liveness=liveness.with_step(state.liveness, state.clock.last, announced=announced or first),
        log_activity=log_activity.with_step(state.log_activity, phase, chunk.text, now),
        loss=lost,
        pace=state.pace if progress.step is None else eta.with_step(state.pace, progress.step, now),
    )
    entries = NOTHING
    if not isinstance(state.machine, Running) or first or state.attempt.proof == "open":
        builder = StepBuilder(knowledge, state)
        if isinstance(state.machine, Hung):
            builder.close_incident(state.machine.incident, "the step advanced again by itself")
        if not isinstance(state.machine, Running):
            builder.move("step", Running(), "training advances")
        if first or state.attempt.proof == "open":
            restart_success.on_beat(builder)
        state, entries = builder.state, tuple(builder.entries)
    if after.loss_is_nan and not before.loss_is_nan:
        state, entries = _nan(knowledge, state, entries)
    if clock.means is not before_means and clock.means:
        state, entries = _pace(knowledge, state, entries)
    if state.attempt.nan_t is not None and progress.loss is not None:
        state, entries = _finite_again(knowledge, state, entries)
    if lost.high and loss.is_spike(lost):
        state, entries = _spike(knowledge, state, entries)
    if lost.long.fresh and progress.loss is not None:
        state, entries = _trend(knowledge, state, entries)
    if phase_changed or state.progress_t is None or t - state.progress_t >= TELL_S:
        state, more = _tell(state, changed=phase_changed)
        state, entries = _look_back(knowledge, state, (*entries, *more))
    return state, entries


def _look_back(knowledge: Knowledge, state: JudgeState, entries: tuple[Entry, ...]) -> Result:
    """Steps advance: are they slow, is a checkpoint overdue? Where nobody watches for them, none is missed."""
    if knowledge.preset.name in hints.STEP_S:
        builder = StepBuilder(knowledge, state)
        hints.on_steps(builder)
        state, entries = builder.state, (*entries, *builder.entries)
    if knowledge.output_dir is None and state.saves.last is None:
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
    """What was announced came to its end: learn how long that takes when all is well."""
    said = state.log_activity
    if said.phase not in log_activity.ANNOUNCED or not said.trusted:
        return state
    quiet_s = liveness.silence(state.liveness, state.clock.last)
    return replace(state, phase_times=phase_times.ended(state.phase_times, said.phase, now - said.phase_at, quiet_s))


def _tell(state: JudgeState, *, changed: bool) -> Result:
    """Write down where the training is."""
    progress = state.progress
    said = eta.with_own_pace(progress, state.pace, state.clock.step_s)
    now = state.attempt
    made = ProgressMade(attempt=now.number, progress=said, overall_step=now.position, step_offset=now.step_offset)
    state = replace(state, progress_t=state.time.t)
    if not changed:
        return state, (made,)
    return state, (PhaseChanged(attempt=state.attempt.number, phase=progress.phase), made)


def _nan(knowledge: Knowledge, state: JudgeState, entries: tuple[Entry, ...]) -> Result:
    if state.attempt.nan_t is not None:
        return state, entries
    builder = StepBuilder(knowledge, replace(state, attempt=replace(state.attempt, nan_t=state.time.t)))
    at = f" at step {state.attempt.step}" if state.attempt.step is not None else ""
    builder.warn("loss", "nan", f"the loss is not a number{at}")
    return builder.state, (*entries, *builder.entries)


def _finite_again(knowledge: Knowledge, state: JudgeState, entries: tuple[Entry, ...]) -> Result:
    """One bad step that was skipped spoils nothing."""
    builder = StepBuilder(knowledge, replace(state, attempt=replace(state.attempt, nan_t=None)))
    for incident in state.incidents:
        if incident.kind == "loss":
            builder.close_incident(incident.id, "the loss is a number again")
    return builder.state, (*entries, *builder.entries)


def _pace(knowledge: Knowledge, state: JudgeState, entries: tuple[Entry, ...]) -> Result:
    """Compare a full block of the step clock with the usual pace."""
    before, clock = state.stall, state.clock
    after = slow.with_block(before, clock.means[-1], max(clock.means[-1], step_clock.BLOCK_S))
    state = replace(state, stall=after)
    if after.open == before.open:
        return state, entries
    builder = StepBuilder(knowledge, state)
    if after.open:
        reason = slow.describe_slow(after, clock, state.liveness)
        name = slow.classify_slow(state.liveness, state.bands)
        help_ = hints.advice(builder, "slow") if name == "slow" else ""
        builder.warn("stall", name, f"{reason}{help_}", title=f"slow ({name})")
    else:
        for incident in state.incidents:
            if incident.kind == "stall":
                builder.close_incident(incident.id, "as fast as usual again")
    return builder.state, (*entries, *builder.entries)


def _spike(knowledge: Knowledge, state: JudgeState, entries: tuple[Entry, ...]) -> Result:
    builder = StepBuilder(knowledge, state)
    progress = state.progress
    trend = f"{state.loss.trend:.3g}" if state.loss.trend is not None else "its trend"
    reason = f"the loss stands at {progress.loss:.3g}, far above {trend}"
    if not builder.warned_lately("loss", "spike"):  # a loss that wavers about the bound is told of once
        builder.warn("loss", "spike", reason, ending="told")
    return builder.state, (*entries, *builder.entries)


def _trend(knowledge: Knowledge, state: JudgeState, entries: tuple[Entry, ...]) -> Result:
    builder = StepBuilder(knowledge, state)
    long = state.loss.long
    reason = f"{loss_trend.describe_trend(long)}{hints.advice(builder, 'plateau')}"
    if long.told == "diverging":
        builder.warn("loss", "diverging", reason, ending="told")
    else:
        builder.open_incident("loss", long.told or "", reason, severity="info", ending="told")
    return builder.state, (*entries, *builder.entries)
