"""When the detector runs, and what follows from a verdict: evidence is captured first, then the trainer is stopped."""

import msgspec

from ...model.decision import CaptureStacks
from ...model.incident import Evidence
from ...model.observation import Outcome
from ...model.record import Entry
from ..hang import active_time, deadlines, detector, stack_evidence
from ..knowledge import Knowledge
from ..recovery import fallback
from ..recovery.apply import answer_failure
from ..recovery.ending_evidence import ended_well
from ..recovery.failure_history import Cause
from ..resume import checkpoint_index
from ..run_machine import is_watched
from ..run_states import Hung, RestartPlan
from ..state import JudgeState, Result
from ..step_builder import StepBuilder

replace = msgspec.structs.replace

CAPTURE_S = 30.0
"""Longest wait for the evidence (py-spy) before the stop."""


def check_hang(knowledge: Knowledge, state: JudgeState, entries: tuple[Entry, ...]) -> Result:
    """Run the detector if the step is late, and open an incident if the run is hung."""
    setting = knowledge.settings.hang
    now = active_time.now(state.time)
    if now - state.clock.last < deadlines.FLOOR_SHARE * setting.min_s:  # true for most observations
        return state, entries
    period_s = state.time.period_s or 1.0
    if now - state.clock.last < deadlines.floor_s(setting.min_s, period_s) or isinstance(state.machine, Hung):
        return state, entries
    if state.time.stopped:
        return state, entries
    if state.asks_since is not None:  # it waits for a person; a restart would ask the same question
        return state, entries
    if now < state.attempt.patient_until or not is_watched(state.machine):
        return state, entries
    verdict = detector.judge(_input(knowledge, state, now, period_s), setting)
    if verdict is None:
        return state, entries
    return _declare(knowledge, state, entries, verdict)


def _input(knowledge: Knowledge, state: JudgeState, now: float, period_s: float) -> deadlines.HangInput:
    setting = knowledge.settings.hang
    return deadlines.HangInput(
        now=now,
        period_s=period_s,
        clock=state.clock,
        liveness=state.liveness,
        log_activity=state.log_activity,
        phase_times=state.phase_times,
        ended_well=ended_well(state),
        step=state.attempt.step,
        checkpoint_age_s=None if setting.checkpoint_age_s is None else _checkpoint_age_s(state),
        warmup_beats=setting.warmup_steps,
        stopped_s=_stopped_s(state),
    )


def is_over(knowledge: Knowledge, state: JudgeState) -> bool:
    """Whether a hang that waits for an answer would not be declared now: signs of life are back."""
    if state.withheld is None or not isinstance(state.machine, Hung):
        return False
    now = active_time.now(state.time)
    return detector.judge(_input(knowledge, state, now, state.time.period_s or 1.0), knowledge.settings.hang) is None


def _stopped_s(state: JudgeState) -> float | None:
    pause = state.pause
    return state.time.t - pause.since_t if pause.stopped == "part" and pause.since_t is not None else None


def _checkpoint_age_s(state: JudgeState) -> float:
    newest = checkpoint_index.newest_verified(state.checkpoints)
    return state.time.t - (state.attempt.start_t if newest is None else newest.t)


def _declare(knowledge: Knowledge, state: JudgeState, entries: tuple[Entry, ...], verdict: detector.Verdict) -> Result:
    builder = StepBuilder(knowledge, state)
    last = state.attempt.beat_t if state.attempt.beat_t is not None else state.attempt.start_t
    number = builder.open_incident(
        "hang",
        verdict.kind,
        verdict.reason,
        severity="info" if verdict.kind == "exiting" else "danger",
        evidence=tuple(Evidence(what=what) for what in verdict.evidence),
        detect_s=builder.t - last,
    )
    builder.notify("incident", f"hang ({verdict.kind})", verdict.reason, incident=number)
    capture = builder.decide(
        CaptureStacks,
        "take evidence of the hang before anything is ended",
        incident=number,
        attempt=state.attempt.number,
    )
    builder.move("hang", Hung(incident=number, capture=capture, until_t=builder.t + CAPTURE_S), verdict.reason)
    return builder.state, (*entries, *builder.entries)


def end_hung(builder: StepBuilder, machine: Hung, outcome: Outcome | None = None) -> None:
    """Stop the trainer, after the evidence was captured or timed out."""
    incident = builder.find_incident(machine.incident)
    signs = stack_evidence.signs_of(outcome)
    if incident is not None and signs:
        seen = tuple(Evidence(what=sign.what) for sign in signs)
        # What a process waits for is better evidence than what its GPU and CPU looked like.
        class_ = incident.class_ if incident.class_ == "exiting" else signs[0].kind
        builder.update_incident(machine.incident, evidence=(*incident.evidence, *seen), class_=class_)
        incident = builder.find_incident(machine.incident)
    fallback.remember(builder)
    attempt = builder.state.attempt
    class_ = incident.class_ if incident is not None else "idle"
    answer_failure(
        builder,
        Cause(kind="hang", class_=class_, attempt=attempt.number, position=attempt.position),
        RestartPlan(reason=f"restart after a hang ({class_})", incident=machine.incident),
        incident=machine.incident,
        reason=incident.reason if incident is not None else "it hung",
        advice=builder.knowledge.catalogue.class_of("hang").remedies,
    )
