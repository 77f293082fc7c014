"""An attempt that ended without being asked to: what it was, and what follows."""

from ...model.decision import CaptureStacks
from ...model.fact import AttemptEnded
from ...model.failure import Diagnosis
from ...model.incident import Evidence
from ...model.observation import Exit
from ..failure.diagnosis import diagnose
from ..resume import checkpoint_index
from ..run_states import Stopped
from ..state import JudgeState
from ..step_builder import Draft
from . import restart_stages, wsl_channel
from .answer import Failure, answer
from .failure_history import Cause
from .training_done import ended_well, proven_done

SIGNALS = {1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL",
           11: "SIGSEGV", 13: "SIGPIPE", 15: "SIGTERM"}  # fmt: skip

CURED_BY_OLDER = frozenset({"nan_loss", "checkpoint_corrupt"})
"""Failures that starting again does not cure, unless from a checkpoint of before the trouble."""


def succeeded(draft: Draft, observation: Exit) -> bool:
    """The exit code is one that the preset calls success."""
    return observation.code is not None and observation.code in draft.knowledge.preset.success_exit_codes


def steps_remain(state: JudgeState) -> bool:
    """It stopped before its last step (early stopping, or a bar of its own kind)."""
    progress = state.progress
    if progress.step is None or progress.total_steps is None or state.reading.finished_words:
        return False
    return progress.step < progress.total_steps and progress.phase == "train"


def on_crash(draft: Draft, observation: Exit) -> None:
    """The trainer is gone and nobody asked it to."""
    state = draft.state
    diagnosis = _diagnose(draft, observation)
    if diagnosis.failure == "success" or (diagnosis.cause is None and proven_done(state)):
        draft.note(f"the log says the training ended well; {say_exit(observation)} came after that")
        restart_stages.finish(draft, observation, "the training is done")
        return
    for hang in [i for i in state.incidents if i.kind == "hang" and i.attempt == state.attempt.number]:
        draft.close_incident(hang.id, f"the trainer ended by itself: {say_exit(observation)}")
    died_t = observation.died_t
    number = draft.open_incident(
        "crash",
        diagnosis.failure,
        _reason(diagnosis, observation),
        evidence=_evidence(diagnosis, observation),
        explanation=diagnosis.explanation,
        detect_s=None if died_t is None else max(0.0, draft.t - died_t),
    )
    by_person = diagnosis.failure == "killed_by_user"
    lost = observation.code is None and observation.signal is None
    draft.fact(
        AttemptEnded(
            attempt=state.attempt.number,
            how="killed" if by_person else "lost" if lost else "crashed",
            code=observation.code,
            signal=observation.signal,
            last_step=state.attempt.step,
            productive_s=restart_stages.productive_s(draft.state),
        )
    )
    restart_stages.remember_end(draft)
    incident = f"crash ({diagnosis.failure})"
    draft.notify("incident", incident, _reason(diagnosis, observation), incident=number)
    draft.decide(
        CaptureStacks,
        "keep what is left of it: the end of its log, the kernel's, GPUs, launch",
        incident=number,
        attempt=state.attempt.number,
    )
    if by_person:
        draft.close_incident(number, "ended by a person")
        draft.move("hold", Stopped(), "a person ended the trainer; held until resume or restart")
        return
    if wsl_channel.is_broken(state, diagnosis.failure, draft.knowledge.catalogue):
        restart_stages.give_up(draft, wsl_channel.ENDING, number, wsl_channel.WINDOWS_SIDE)
        return
    before_t = state.attempt.nan_t if diagnosis.failure == "nan_loss" else None
    if diagnosis.failure == "checkpoint_corrupt" and state.attempt.resume_from is not None:
        restart_stages.distrust(draft, state.attempt.resume_from, "the trainer could not read it")
    cured = diagnosis.failure in CURED_BY_OLDER and checkpoint_index.newest_good(
        draft.state.shelf, draft.knowledge.telling, before_t=before_t
    )
    plan = answer(
        draft,
        Failure(
            cause=Cause(
                kind="crash",
                class_=diagnosis.failure,
                attempt=state.attempt.number,
                position=state.attempt.position,
            ),
            incident=number,
            reason=_reason(diagnosis, observation),
            curable=diagnosis.retryable or bool(cured),
            advice=diagnosis.remedies,
            before_t=before_t,
        ),
    )
    if plan.ending:
        restart_stages.give_up(draft, plan.ending, number, plan.advice)
    else:
        restart_stages.clear_and_restart(draft, plan)


def _diagnose(draft: Draft, observation: Exit) -> Diagnosis:
    state = draft.state
    kills = None
    if state.oom_kills is not None and state.oom_kills_before is not None:
        kills = state.oom_kills - state.oom_kills_before
    return diagnose(
        state.diagnosis,
        draft.knowledge.catalogue,
        exit_code=observation.code,
        signal=observation.signal,
        oom_kills=kills,
        stopped_by_operator=False,
        finished_hint=ended_well(state),
    )


def say_exit(observation: Exit) -> str:
    """In words for people."""
    if observation.signal is not None:
        signal = observation.signal
        return f"signal {SIGNALS.get(signal, signal) if isinstance(signal, int) else signal}"
    if observation.code is not None:
        return f"exit code {observation.code}"
    return "its exit status was lost"


def _reason(diagnosis: Diagnosis, observation: Exit) -> str:
    if diagnosis.cause is not None:
        return f"{say_exit(observation)}: {diagnosis.cause.text.strip()[:200]}"
    if diagnosis.failure == "unknown":
        return f"{say_exit(observation)}; the log does not say why"
    return say_exit(observation)


def _evidence(diagnosis: Diagnosis, observation: Exit) -> tuple[Evidence, ...]:
    said = [Evidence(what=say_exit(observation))]
    if diagnosis.cause is not None:
        said.insert(0, Evidence(what=diagnosis.cause.text.strip()[:400], line=diagnosis.cause.line))
    said.extend(Evidence(what=f"then: {c.text.strip()[:200]}", line=c.line) for c in diagnosis.cascade[:3])
    return tuple(said)
