"""What a supervisor does about a trainer that was launched or is found running, and about a run without a trainer."""

from typing import assert_never

import msgspec

from ...model.fact import AttemptEnded, AttemptStarted
from ...model.observation import Start
from ...model.why import Why
from .. import run_machine, run_states
from ..attempt_progress import AttemptProgress, read_anew
from ..failure.evidence_state import DiagnosisState
from ..findings import eta, loss, unread_steps
from ..findings.save_cost import SaveCost
from ..findings.slow import Stall
from ..findings.unread_steps import UnreadLog
from ..hang import active_time, liveness, step_clock
from ..hang.launcher import Launcher
from ..hang.log_activity import LogActivity
from ..hang.pauses import Pause
from ..hang.save_phase import SavePhase
from ..hang.step_peak import StepPeak
from ..progress.log_progress import begin_attempt
from ..resume import checkpoint_index
from ..resume.first_lines import widest_gap
from ..run_states import (
    BackingOff,
    Cleaning,
    Copying,
    EndedEarly,
    Finished,
    GivenUp,
    Hung,
    Idle,
    Interrupted,
    Listing,
    Paused,
    Queued,
    RestartPlan,
    Running,
    Starting,
    Stopped,
    Stopping,
    Suspended,
    Verifying,
    WaitingForGpu,
    WaitingForRoom,
)
from ..step_builder import StepBuilder
from . import attempts, loss_after_resume, restart_stages
from .ending import at_end
from .ending.ending_evidence import main_reading, run_total
from .operator import gate
from .quiet_incident import close_quiet
from .remedies import ramp
from .remedies.remedy_memory import Printed
from .resume_point import resume_choice

replace = msgspec.structs.replace

CHANGES_KEPT = 6
"""Changes of a launch that are named if it does not start."""
GO_ON = RestartPlan(reason="continue after an interruption")


def go_on(builder: StepBuilder) -> None:
    """No trainer process exists: start, restart or wait, depending on the state that the last supervisor left."""
    machine = builder.state.machine
    match machine:
        case Idle() if builder.knowledge.begin_from is not None:
            wanted = builder.knowledge.begin_from
            resume_choice.choose(builder, RestartPlan(reason="first launch", by="the start of the run", wanted=wanted))
        case Idle():
            attempts.launch(builder, RestartPlan(reason="first launch", by="the start of the run"))
        case Starting(stop_requested=True) | Stopping(then="hold" | "end"):
            _lost(builder)
            builder.move("hold", Stopped(), "stopped by a person; held until resume or restart", Why("person"))
        case Stopping(then="end_by", plan=plan):
            _lost(builder)
            builder.move("hold", Stopped(), f"{plan.reason}; held until resume or restart", Why("ordered"))
            at_end.over(builder)
        case Stopping(then="finish"):
            _lost(builder)
            attempts.conclude(builder, "the training had finished")
        case Stopping(then="give_up", plan=plan):
            _lost(builder)
            attempts.give_up(builder, plan.ending, plan.incident, plan.advice)
        case Stopping(plan=plan):
            _lost(builder)
            restart_stages.clear_and_restart(builder, plan)
        case (
            Cleaning(plan=plan) | Listing(plan=plan) | Copying(plan=plan) | Verifying(plan=plan) | BackingOff(plan=plan)
        ):
            restart_stages.clear_and_restart(builder, msgspec.structs.replace(plan, verified=None))
        case Starting(launched=False, plan=plan):
            meant = GO_ON if plan is None else replace(GO_ON, wanted=plan.wanted, fresh=plan.fresh, by=plan.by)
            restart_stages.clear_and_restart(builder, meant)
        case Starting() | Running() | Hung() | Paused() | Suspended() | Queued():
            _lost(builder)
            builder.move("lost", Interrupted(), "the trainer ended while no supervisor was running")
            restart_stages.clear_and_restart(builder, GO_ON)
        case Interrupted():
            restart_stages.clear_and_restart(builder, GO_ON)
        case WaitingForRoom(until_t=float() as until_t):
            builder.set(wake_t=until_t)  # a restored state has none
        case WaitingForRoom() | WaitingForGpu() | Stopped() | Finished() | EndedEarly() | GivenUp():
            pass
        case _:
            assert_never(machine)


def _lost(builder: StepBuilder) -> None:
    state = builder.state
    machine = state.machine
    if run_machine.is_live(machine):
        builder.fact(AttemptEnded(attempt=state.attempt.number, how="lost", last_step=state.attempt.step))
        attempts.remember_end(builder)


def started(builder: StepBuilder, start: Start) -> None:
    """A trainer process exists: the one that was launched, or one that was found running."""
    state = builder.state
    machine = state.machine
    now = active_time.now(state.time)
    same = start.adopted and start.attempt == state.attempt.number
    if not same:
        _lost(builder)
    known = checkpoint_index.find(state.checkpoints, start.resume_from) if start.resume_from is not None else None
    opening = main_reading(state).now.opening
    fresh = state.attempt.fresh_step, state.attempt.fresh_epoch
    if opening.marks and not opening.gap and state.attempt.resume_from is None and not state.attempt.adopted:
        fresh = opening.first_step, opening.first_epoch
    settings = loss_after_resume.settings_of(state, start.profile)
    attempt = AttemptProgress(
        number=start.attempt,
        pid=start.pid,
        start_t=builder.t,
        resume_from=start.resume_from,
        resume_step=start.resume_step if start.resume_step is not None else known.step if known else None,
        resume_position=known.position if known is not None else None,
        profile=start.profile,
        adopted=start.adopted,
        adopted_t=builder.t if start.adopted else None,
        weights_only=_weights_only(builder, start, machine),
        stride=state.attempt.stride,
        resume_verdict="none" if start.resume_from is None else "open",
        told_resume=machine.told_resume if isinstance(machine, Starting) else None,
        named=machine.named if isinstance(machine, Starting) else (),
        resume_epoch=known.epoch if known is not None else None,
        resume_log_epoch=known.log_epoch if known is not None else None,
        fresh_step=fresh[0],
        fresh_epoch=fresh[1],
        pace_before_s=state.progress.sec_per_step or state.attempt.pace_before_s,
        former=loss_after_resume.former(state, settings),
        loss_settings=settings,
        former_epoch=state.progress.epoch,
        losses_before=opening.shows_losses if opening.counted else state.attempt.losses_before,
        resume_epochs=known.epochs_done if known is not None else None,
        changes=tuple(f"{c.key} {c.before} -> {c.after}" for c in start.changes[:CHANGES_KEPT]),
        total_before=state.progress.run_total_steps,
        run_total_before=run_total(state) or state.attempt.run_total_before,
        bar_total_before=state.progress.total_steps if opening.marks else state.attempt.bar_total_before,
        printed_every_before=state.attempt.printed_every,
        widest_gap_before=widest_gap(opening.counted) or state.attempt.widest_gap_before,
    )
    if same:
        # A new supervisor: the attempt is known, and its log is read from the beginning again.
        lost_at = None if state.attempt.lost_at is None else now
        attempt = msgspec.structs.replace(read_anew(state.attempt, start.pid), adopted_t=builder.t, lost_at=lost_at)
    close_quiet(builder, "a new supervisor took over")
    fresh_clock = step_clock.begin_attempt(state.clock, now)
    builder.set(
        attempts=max(state.attempts, start.attempt),
        attempt=attempt,
        reading=begin_attempt(
            state.reading,
            resumed=attempt.resume_from is not None and not attempt.weights_only,
            began=attempt.began,
        ),
        other_logs={},
        beating=same and state.beating,
        reads_beats=False,
        reads_log=None,
        diagnosis=DiagnosisState(),
        clock=step_clock.restart_wait(state.clock, now) if same and state.clock.beats else fresh_clock,
        liveness=liveness.begin_attempt(state.liveness, now),
        log_activity=LogActivity(phase_at=now),
        pause=Pause(),
        saving=SavePhase(),
        peak=StepPeak(at=now),
        ranks=(),
        launcher=Launcher(),
        gpu_fault=None,
        loss=loss.begin_attempt(state.loss),
        save_cost=SaveCost(),
        stall=Stall(usual_s=state.stall.usual_s, learned=state.stall.learned),
        pace=eta.begin_attempt(state.pace),
        unread=unread_steps.read_anew(state.unread) if same else UnreadLog(),
        time=msgspec.structs.replace(state.time, stopped=False),
        oom_kills_before=state.oom_kills,
        disk_low=None,
        progress_t=None,
        profile=start.profile if start.profile is not None else state.profile,
        taken_over=True,
        printed=Printed(),
    )
    ramp.begin_attempt(builder, attempt.resume_epochs)
    if not same:
        builder.fact(
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
                script=start.script,
                adopted=start.adopted,
            )
        )
    if start.adopted:
        at_end.set_time(builder)
    _stand(builder, start, same=same, was=machine)


def _weights_only(builder: StepBuilder, start: Start, machine: run_states.Machine) -> bool:
    """Whether the trainer restores weights only and counts steps from zero: as the launch reports, else the preset."""
    if isinstance(machine, Starting) and machine.restores in {"state", "weights"}:
        return machine.restores == "weights"
    return builder.knowledge.preset.resume == "weights" and start.resume_from is not None


def _stand(builder: StepBuilder, start: Start, *, same: bool, was: run_states.Machine) -> None:
    """The state of the run with this trainer. A stop that the last supervisor had decided is repeated."""
    how = f"attempt {start.attempt} {'adopted' if start.adopted else 'started'}"
    if same and isinstance(was, Stopping) and not gate.is_closed(builder, was.plan):
        # The stop of this attempt was decided and is not done.
        restart_stages.stop(builder, was.then, was.plan, mode="kill" if was.kill else "gentle", by=was.by)
        return
    if same and isinstance(was, Paused):
        builder.set(time=msgspec.structs.replace(builder.state.time, stopped=True))
        return
    if same and isinstance(was, Hung):
        builder.close_incident(was.incident, "a new supervisor took over")
    if same and builder.state.trains:
        builder.move("training", Running(), how)
    else:
        builder.move("started", Starting(launched=True), how)
    if isinstance(was, Starting) and was.end_plan is not None and not start.adopted:
        restart_stages.stop(builder, "end", was.end_plan, by=was.end_plan.by)
    elif isinstance(was, Starting) and was.restart_plan is not None:
        restart_stages.stop(builder, "restart", was.restart_plan, by=was.restart_plan.by)
    elif isinstance(was, Starting) and was.stop_requested:
        restart_stages.stop(builder, "hold", RestartPlan(reason="stop requested during the launch"), by="a person")
