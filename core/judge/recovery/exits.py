"""What an exit or a failed launch means: the training is done, a person ended it, or it is a failure."""

import re

import msgspec

from ...model.decision import CaptureStacks
from ...model.incident import Evidence
from ...model.observation import Exit, Outcome
from ...model.shipped.failure import Diagnosis
from ..failure import exit_status
from ..failure.diagnosis import diagnose
from ..run_machine import is_live
from ..run_states import RestartPlan, Starting, Stopping
from ..state import JudgeState
from ..step_builder import StepBuilder
from ..text.patterns import LazyPattern
from . import restart_stages, resume_choice
from .apply import answer_failure
from .attempts import ended, finish
from .failure_history import Cause

FINAL = LazyPattern(r"(?<![a-z])final(?![a-z])", re.IGNORECASE)
"""What trainers that print no end call their last checkpoint: ``model_final.pth``, ``checkpoint-final``."""
SAVE_SLACK_S = 30.0
"""A checkpoint that became complete this long before the last printed step still belongs to it (lines lag)."""
NEARLY = 0.98
"""Share of the steps: early stopping and rounded totals end a little before it."""


def on_exit(builder: StepBuilder, observation: Exit) -> None:
    """The main process of the trainer exited."""
    machine = builder.state.machine
    if isinstance(machine, Stopping):
        restart_stages.on_exit_while_stopping(builder, machine, observation)
    elif is_live(machine):
        if observation.code in builder.knowledge.preset.success_exit_codes:
            _on_success(builder, observation)
        else:
            _on_crash(builder, observation)


def _on_success(builder: StepBuilder, observation: Exit) -> None:
    """The exit code is one that the preset calls success."""
    progress = builder.state.progress
    if _steps_remain(builder.state):
        builder.note(f"it ended with success at step {progress.step} of {progress.total_steps}")
    finish(builder, observation, "the training is done")


def _steps_remain(state: JudgeState) -> bool:
    """It stopped before its last step (early stopping, or a bar of its own kind)."""
    progress = state.progress
    if progress.step is None or progress.total_steps is None or state.reading.finished_words:
        return False
    return progress.step < progress.total_steps and progress.phase == "train"


def _on_crash(builder: StepBuilder, observation: Exit) -> None:
    """The trainer ended by itself, without success."""
    state = builder.state
    attempt, diagnosis = state.attempt, _diagnose(builder, observation)
    class_ = diagnosis.failure
    if class_ == "success" or (diagnosis.cause is None and proven_done(state)):
        builder.note(f"the log reports the end of the training; {_exit_in_words(observation)} came after that")
        finish(builder, observation, "the training is done")
        return
    for hang in [i for i in state.incidents if i.kind == "hang" and i.attempt == attempt.number]:
        builder.close_incident(hang.id, f"the trainer ended by itself: {_exit_in_words(observation)}")
    died_t, reason = observation.died_t, _reason(diagnosis, observation)
    incident = builder.open_incident(
        "crash",
        class_,
        reason,
        evidence=_evidence(diagnosis, observation),
        explanation=diagnosis.explanation,
        detect_s=None if died_t is None else max(0.0, builder.t - died_t),
    )
    lost = observation.code is None and observation.signal is None
    ended(builder, "killed" if class_ == "killed_by_user" else "lost" if lost else "crashed", observation)
    builder.notify("incident", f"crash ({class_})", reason, incident=incident)
    builder.decide(
        CaptureStacks,
        "capture evidence: end of the log, kernel log, GPUs, launch",
        incident=incident,
        attempt=attempt.number,
    )
    doubted = False
    if class_ == "checkpoint_corrupt" and attempt.beat_t is None and attempt.resume_from is not None:
        doubted = resume_choice.doubt(builder, attempt.resume_from, reason)
    before_t = attempt.nan_t if class_ == "nan_loss" else None
    answer_failure(
        builder,
        Cause(kind="crash", class_=class_, attempt=attempt.number, position=attempt.position),
        RestartPlan(reason=f"restart after crash ({class_})", incident=incident, before_t=before_t),
        incident=incident,
        reason=reason,
        retryable=diagnosis.retryable or doubted,
        advice=diagnosis.remedies,
        confidence=diagnosis.confidence,
    )


def on_launch_failed(builder: StepBuilder, machine: Starting, outcome: Outcome) -> None:
    """The launch itself failed: no such command, no room on the disk, a config that cannot be derived."""
    need = outcome.data.get("need_bytes")
    meant = machine.plan if machine.plan is not None else RestartPlan(reason="")
    again = RestartPlan(reason="the launch failed", wanted=meant.wanted, fresh=meant.fresh, before_t=meant.before_t)
    if isinstance(need, int | float):
        fresh = meant.fresh or outcome.data.get("fresh") is True
        go_on = msgspec.structs.replace(again, reason="go on with room on the disk", fresh=fresh, by=meant.by)
        restart_stages.wait_for_room(builder, go_on, need)
        return
    if outcome.data.get("no_room") is True:
        fresh = meant.fresh or outcome.data.get("fresh") is True
        go_on = msgspec.structs.replace(again, fresh=fresh, by=meant.by, no_room=meant.no_room)
        restart_stages.wait_for_room_somewhere(builder, go_on, outcome.detail or "the disk is full")
        return
    why = outcome.detail or "the trainer could not be started"
    incident = builder.open_incident("crash", "config_error", why, explanation="the command could not be started")
    builder.notify("incident", "cannot start", why, incident=incident)
    answer_failure(
        builder,
        Cause(kind="launch", class_="config_error", attempt=builder.state.attempts),
        msgspec.structs.replace(again, incident=incident),
        incident=incident,
        reason=why,
        retryable=bool(outcome.data.get("retryable", True)),
        settings_at_fault=outcome.data.get("settings") is True,
    )


def _diagnose(builder: StepBuilder, observation: Exit) -> Diagnosis:
    state = builder.state
    kills = None
    if state.oom_kills is not None and state.oom_kills_before is not None:
        kills = state.oom_kills - state.oom_kills_before
    return diagnose(
        state.diagnosis,
        builder.knowledge.catalogue,
        exit_code=observation.code,
        signal=observation.signal,
        oom_kills=kills,
        stopped_by_operator=False,
        finished_hint=ended_well(state),
    )


def _exit_in_words(observation: Exit) -> str:
    if observation.signal is not None:
        signal = observation.signal
        return f"signal {exit_status.NAMES.get(signal, signal) if isinstance(signal, int) else signal}"
    if observation.code is not None:
        return f"exit code {observation.code}"
    return "exit status unknown"


def _reason(diagnosis: Diagnosis, observation: Exit) -> str:
    exit_ = _exit_in_words(observation)
    if diagnosis.cause is not None:
        return f"{exit_}: {diagnosis.cause.text.strip()[:200]}"
    return f"{exit_}; the log does not say why" if diagnosis.failure == "unknown" else exit_


def _evidence(diagnosis: Diagnosis, observation: Exit) -> tuple[Evidence, ...]:
    found = [Evidence(what=_exit_in_words(observation))]
    if diagnosis.cause is not None:
        found.insert(0, Evidence(what=diagnosis.cause.text.strip()[:400], line=diagnosis.cause.line))
    found.extend(Evidence(what=f"then: {c.text.strip()[:200]}", line=c.line) for c in diagnosis.cascade[:3])
    return tuple(found)


# --- whether the training is done, although its process may still be there ---


def ended_well(state: JudgeState) -> bool:
    """The last step is done, the log or a checkpoint's name said so, and no final save is missing or under way."""
    beat_t = state.attempt.beat_t
    own = [k for k in state.checkpoints.known if k.own]
    named = beat_t is not None and any(k.complete and k.t >= beat_t - SAVE_SLACK_S and _is_final(k.path) for k in own)
    if not (last_step_done(state) or ((named or state.reading.finished_words) and not _far_from_end(state))):
        return False
    if not own or beat_t is None:
        return True
    if any(not k.complete and k.bad is None and k.t >= beat_t - SAVE_SLACK_S for k in own):
        return False
    return state.reading.finished_words or any(k.complete and k.t >= beat_t - SAVE_SLACK_S for k in own)


def _is_final(path: str) -> bool:
    return FINAL.search(path.rstrip("/").rpartition("/")[2]) is not None


def proven_done(state: JudgeState) -> bool:
    """It ended well, and not only by its counter: the log said so, or the final checkpoint is there."""
    own = any(k.own and k.complete for k in state.checkpoints.known)
    return ended_well(state) and (state.reading.finished_words or own)


def last_step_done(state: JudgeState) -> bool:
    """The step counter is at its total, and in the last epoch if it counts within epochs."""
    progress = state.progress
    if progress.step is None or progress.total_steps is None or progress.step < progress.total_steps:
        return False
    reading = state.reading.now
    if not reading.per_epoch:
        # Whether a bar counts within the epoch shows only at the first turn.
        several = progress.total_epochs is not None and progress.total_epochs > 1 and progress.epoch is not None
        return not (several and (progress.epoch or 0) <= (0 if reading.zero_based else 1))
    if progress.total_epochs is None or progress.epoch is None:
        return False
    return int(progress.epoch) >= progress.total_epochs - (1 if reading.zero_based else 0)


def _far_from_end(state: JudgeState) -> bool:
    """Words of an end in the middle of the run ("epoch finished") are not the end."""
    progress = state.progress
    if progress.step is None or progress.total_steps is None:
        return False
    return progress.step < progress.total_steps * NEARLY and not state.reading.now.per_epoch
