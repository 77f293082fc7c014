"""A trainer that exists: a launch of ours that came up, or one that is found running; and a run without any."""

from typing import assert_never

import msgspec

from ...model.fact import AttemptEnded, AttemptStarted
from ...model.observation import Start
from .. import run_machine, run_states
from ..attempt_progress import AttemptNow, read_anew
from ..failure.log_evidence import DiagnosisState
from ..findings import eta
from ..findings.loss import Loss
from ..findings.slow import Stall
from ..hang import active_time, liveness, step_clock
from ..hang.log_activity import LogActivity
from ..progress.log_progress import START
from ..resume import checkpoint_index
from ..run_states import (
    BackingOff,
    Cleaning,
    Finished,
    GivenUp,
    Held,
    Hung,
    Idle,
    Interrupted,
    Paused,
    RestartPlan,
    Running,
    Starting,
    Stopped,
    Stopping,
    Verifying,
)
from ..step_builder import Draft
from . import attempts, ramp, restart_stages

GO_ON = RestartPlan(reason="go on after an interruption")


def go_on(draft: Draft) -> None:
    """No trainer is there: start, resume or wait, by what the run was doing when it was last watched."""
    machine = draft.state.machine
    match machine:
        case Idle():
            attempts.launch(draft, RestartPlan(reason="first launch"))
        case Starting(hold=True) | Stopping(then="hold" | "end"):
            _lost(draft)
            draft.move("hold", Stopped(), "stopped by a person; held until resume or restart")
        case Stopping(then="finish"):
            _lost(draft)
            attempts.conclude(draft, "the training had finished")
        case Stopping(then="give_up", plan=plan):
            _lost(draft)
            attempts.give_up(draft, plan.ending, plan.incident, plan.advice)
        case Stopping(plan=plan):
            _lost(draft)
            restart_stages.clear_and_restart(draft, plan)
        case Cleaning(plan=plan) | Verifying(plan=plan) | BackingOff(plan=plan):
            restart_stages.clear_and_restart(draft, plan)
        case Starting(launched=False, plan=plan):
            meant = GO_ON if plan is None else msgspec.structs.replace(GO_ON, wanted=plan.wanted, fresh=plan.fresh)
            restart_stages.clear_and_restart(draft, meant)
        case Starting() | Running() | Hung() | Paused():
            _lost(draft)
            draft.move("lost", Interrupted(), "the trainer ended while no supervisor watched")
            restart_stages.clear_and_restart(draft, GO_ON)
        case Interrupted():
            restart_stages.clear_and_restart(draft, GO_ON)
        case Held() | Stopped() | Finished() | GivenUp():
            pass
        case _:
            assert_never(machine)


def _lost(draft: Draft) -> None:
    state = draft.state
    machine = state.machine
    if run_machine.is_live(machine):
        draft.fact(AttemptEnded(attempt=state.attempt.number, how="lost", last_step=state.attempt.step))
        attempts.remember_end(draft)


def started(draft: Draft, start: Start) -> None:
    """A trainer exists: ours, or one that was found running."""
    state = draft.state
    machine = state.machine
    now = active_time.active(state.timeline)
    same = start.adopted and start.attempt == state.attempt.number
    if not same:
        _lost(draft)
    known = checkpoint_index.find(state.shelf, start.resume_from) if start.resume_from is not None else None
    attempt = AttemptNow(
        number=start.attempt,
        pid=start.pid,
        start_t=draft.t,
        resume_from=start.resume_from,
        resume_step=start.resume_step if start.resume_step is not None else known.step if known else None,
        resume_position=known.position if known is not None else None,
        profile=start.profile,
        adopted=start.adopted,
        weights_only=_weights_only(draft, start, machine),
        stride=state.attempt.stride,
        proof="none" if start.resume_from is None else "open",
        told_resume=machine.told_resume if isinstance(machine, Starting) else None,
        named=machine.named if isinstance(machine, Starting) else (),
        resume_epoch=known.epoch if known is not None else None,
        resume_epochs=known.epochs_done if known is not None else None,
        total_before=state.progress.total_steps,
        grain_before=state.attempt.grain,
    )
    if same:
        # A new supervisor: the attempt is the known one, only its log is read anew.
        attempt = read_anew(state.attempt, start.pid)
    fresh_clock = step_clock.begin_attempt(state.clock, now)
    draft.set(
        attempts=max(state.attempts, start.attempt),
        attempt=attempt,
        reading=START,
        others={},
        diagnosis=DiagnosisState(),
        clock=step_clock.grace_after(state.clock, now) if same and state.clock.beats else fresh_clock,
        liveness=liveness.begin_attempt(state.liveness, now),
        log_activity=LogActivity(phase_at=now),
        loss=Loss(),
        stall=Stall(usual_s=state.stall.usual_s, learned=state.stall.learned),
        pace=eta.begin_attempt(state.pace),
        timeline=msgspec.structs.replace(state.timeline, stopped=False),
        oom_kills_before=state.oom_kills,
        told_t=None,
        profile=start.profile if start.profile is not None else state.profile,
        taken_over=True,
    )
    ramp.begin_attempt(draft, attempt.resume_epochs)
    if not same:
        draft.fact(
            AttemptStarted(
                attempt=start.attempt,
                pid=start.pid,
                runner_pid=start.runner_pid,
                log=start.log,
                directory=start.directory,
                resume_from=start.resume_from,
                resume_step=attempt.resume_step,
                profile=start.profile,
                changes=start.changes,
                adopted=start.adopted,
            )
        )
    _stand(draft, start, same=same, was=machine)


def _weights_only(draft: Draft, start: Start, machine: run_states.Machine) -> bool:
    """Whether its step counter starts anew by design; the launch knows best (a directory may hold all the state)."""
    if isinstance(machine, Starting) and machine.restores in {"state", "weights"}:
        return machine.restores == "weights"
    return draft.knowledge.preset.resume == "weights" and start.resume_from is not None


def _stand(draft: Draft, start: Start, *, same: bool, was: run_states.Machine) -> None:
    """Where the run stands with this trainer. What the last supervisor was about to do is taken up again."""
    how = f"attempt {start.attempt} {'adopted' if start.adopted else 'started'}"
    if same and isinstance(was, Stopping):
        # The end of this attempt was decided and is not done.
        restart_stages.stop(draft, was.then, was.plan, mode="kill" if was.kill else "gentle", by=was.by)
        return
    if same and isinstance(was, Paused):
        draft.set(timeline=msgspec.structs.replace(draft.state.timeline, stopped=True))
        return
    if same and isinstance(was, Hung):
        draft.close_incident(was.incident, "a new supervisor looks again")
    if same and draft.state.clock.beats:
        draft.move("training", Running(), how)
    else:
        draft.move("started", Starting(launched=True), how)
    if isinstance(was, Starting) and was.hold:
        restart_stages.stop(draft, "hold", RestartPlan(reason="a person said stop while it was being started"))
