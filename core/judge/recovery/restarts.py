"""A restart: its stages up to the choice of the resume point, and when it counts as successful."""

from typing import assert_never

import msgspec

from ...model.decision import ClearGpu, CopyAside, EndLeftovers, EndWatch, StopAttempt
from ...model.fact import BudgetChanged
from ...model.observation import Exit, HostSample, Outcome
from ...model.progress import ToldLength, Why
from ...model.run import VANISHED, Evidence, Incident, has_inodes
from ...model.settings import SAVE_WAIT_S
from ...model.text import plural, sizes_apart, typed
from .. import findings, memory, run_states
from ..handlers import checkpoint_jobs
from ..progress import AttemptProgress, Former, lost_steps
from ..resume import checkpoint_index, resume_check
from ..resume.checkpoint_index import base_name
from ..resume.resume_check import VERIFIED, name_of
from ..scales import SAVE_GAP_S
from ..state import JudgeState, StepBuilder
from ..text.reading import FEW, LossCurve, moved, thinned
from . import attempts, gate, resume_choice
from .attempts import conclude, ended, give_up
from .ending import main_reading, may_be_of_an_epoch, run_total
from .remedies import merged
from .resume_choice import choose

# (checkpoint asked for →) stop → no process left → GPU memory released → output folder listed → resume point chosen
# and verified → back-off → launch → first step. resume_choice.py and attempts.py have the stages from the list on.

replace = msgspec.structs.replace
LAST_S = 1.0
"""Kept free before the machine ends, for the journal."""


def stop(
    builder: StepBuilder,
    then: run_states.Then,
    plan: run_states.RestartPlan,
    *,
    kill: bool = False,
    exited: bool = False,
) -> None:
    """End the attempt's processes; ``then`` follows. ``exited``: the main process is gone already.

    The gate may withhold what no person ordered (``plan.by``).
    """
    if gate.is_closed(builder, plan):
        gate.withhold(builder, then, plan, live=True)
        return
    if not kill and plan.by and attempts.is_wanted(builder):
        order = attempts.request(builder, f"{plan.reason}: ask for a checkpoint first", plan.incident, stop=True)
        left_s, wait_s = _left_s(builder, plan), SAVE_WAIT_S
        # What the signals get: a trainer that has saved ends at once.
        wait_s = wait_s if left_s is None else min(wait_s, max(0.0, left_s - SAVE_GAP_S))
        saving = run_states.Saving(asked_t=builder.t, until_t=builder.t + wait_s)
        reason = f"{plan.reason}; it was asked for a checkpoint first, for which the stop waits up to {wait_s:.0f} s"
        builder.move("stop", run_states.Stopping(order=order, then=then, plan=plan, saving=saving), reason)
        return
    _signal(builder, run_states.Stopping(order=0, then=then, plan=plan, exited=exited, kill=kill))


def _signal(builder: StepBuilder, machine: run_states.Stopping) -> None:
    plan, mode = machine.plan, "kill" if machine.kill else "gentle"
    left_s = _left_s(builder, plan)
    order = builder.decide(StopAttempt, plan.reason, incident=plan.incident, mode=mode, within_s=left_s)
    builder.move("stop", replace(machine, order=order, saving=None), plan.reason)


def on_checkpoint_while_saving(builder: StepBuilder, machine: run_states.Stopping, saving: run_states.Saving) -> None:
    """A checkpoint changed: go on with the stop once it is complete; while it grows, wait."""
    if attempts.came(builder.state, saving.asked_t):
        end_saving(builder, machine, "the checkpoint that was asked for is complete")
        return
    until_t = max(saving.until_t, builder.t + SAVE_WAIT_S)
    if machine.plan.deadline_t is not None:
        until_t = min(until_t, machine.plan.deadline_t - LAST_S)
    builder.move("command", replace(machine, saving=replace(saving, until_t=until_t)))


def end_saving(builder: StepBuilder, machine: run_states.Stopping, why: str) -> None:
    """Nothing more is waited for: end the processes."""
    builder.note(why)
    _signal(builder, machine)


def _left_s(builder: StepBuilder, plan: run_states.RestartPlan) -> float | None:
    """Seconds that a stop has before the machine ends; None = as long as the settings say."""
    return None if plan.deadline_t is None else max(LAST_S, plan.deadline_t - builder.t - LAST_S)


def clear_and_restart(builder: StepBuilder, plan: run_states.RestartPlan) -> None:
    """The trainer is gone: end the processes that it left behind, then restart as after a stop."""
    plan = gate.with_order(builder, plan)
    if gate.is_closed(builder, plan):
        gate.withhold(builder, "restart", plan, live=False)
        return
    builder.change("operator", resume_ordered=None)
    reason = f"{plan.reason}: end leftover processes first"
    order = builder.decide(EndLeftovers, reason, incident=plan.incident, mode="gentle")
    stopping = run_states.Stopping(order=order, then="restart", plan=plan, exited=True, leftovers=True)
    builder.move("clear_leftovers", stopping, plan.reason)


def on_stop_outcome(builder: StepBuilder, machine: run_states.Stopping, outcome: Outcome) -> None:
    """No process is left, or one would not end: then kill, and if that fails, give up."""
    detail, incident = outcome.detail or "no detail", machine.plan.incident
    if machine.saving is not None:
        if not outcome.ok:
            end_saving(builder, machine, f"it was not asked for a checkpoint: {detail}")
    elif outcome.ok:
        gone = replace(machine, gone_t=builder.t)
        builder.move("processes_gone", gone)
        if machine.exited:
            after_end(builder, gone.then, gone.plan)
    elif machine.kill:
        if not machine.exited:
            _ended(builder, machine, None)
        give_up(builder, f"its processes cannot be stopped: {detail}", incident)
    else:
        reason, kind = f"the gentle stop did not end it ({detail})", EndLeftovers if machine.leftovers else StopAttempt
        order = builder.decide(kind, reason, incident=incident, mode="kill")
        builder.move("kill", replace(machine, order=order, kill=True))


def on_exit_while_stopping(builder: StepBuilder, machine: run_states.Stopping, observation: Exit | None) -> None:
    """The main process exited; its children may need a moment longer. None: no process is left, and no status came."""
    if machine.exited:
        return
    _ended(builder, machine, observation)
    new = replace(machine, exited=True)
    builder.move("exit", new)
    if new.saving is not None:
        end_saving(builder, new, "it ended by itself after it was asked for a checkpoint")
        return
    if new.gone_t is not None:
        after_end(builder, new.then, new.plan)


def _ended(builder: StepBuilder, machine: run_states.Stopping, observation: Exit | None) -> None:
    ended(builder, "finished" if machine.then == "finish" else "killed" if machine.kill else "stopped", observation)


STOP_IN_LAUNCH = run_states.RestartPlan(reason="stop requested during the launch", by="a person")


def after_end(builder: StepBuilder, then: run_states.Then, plan: run_states.RestartPlan) -> None:
    """The attempt ended, or was not begun, and no process of it is left."""
    by = plan.by or "a person"
    match then:
        case "restart":
            held = "the GPU memory of the ended processes"
            order = builder.decide(ClearGpu, f"wait until {held} is released", incident=plan.incident)
            builder.move("clear_gpu", run_states.Preparing("clear_gpu", order, plan), f"waiting for {held}")
        case "give_up":
            give_up(builder, plan.ending, plan.incident, plan.advice)
        case "finish":
            conclude(builder, "the training is done; its process did not exit and was stopped")
        case "hold":
            builder.move("hold", run_states.Stopped(), f"stopped by {by}; held until resume or restart", Why("person"))
        case "end_by":
            builder.move("hold", run_states.Stopped(), f"{plan.reason}; held until resume or restart", Why("ordered"))
            checkpoint_jobs.over(builder)
        case "end" if plan.deadline_t is not None:
            builder.move("leave", run_states.Interrupted(), f"{plan.reason}; the next start goes on")
            builder.decide(EndWatch, f"the trainer was stopped: {plan.reason}", exit_code=0)
        case "end":
            builder.move("hold", run_states.Stopped(), f"stopped by {by} with the supervisor", Why("person"))
            builder.decide(EndWatch, "the trainer was stopped as requested", exit_code=0)
        case _:
            assert_never(then)


def on_clear_outcome(builder: StepBuilder, machine: run_states.Preparing, outcome: Outcome) -> None:
    """The GPU memory is released, or the time limit passed: then go on or hold, as the settings say."""
    plan, why = machine.plan, outcome.detail or "time limit passed"
    if not outcome.ok and builder.settings.restart.if_gpu_not_clear != "go_on":
        attempts.hold(builder, plan, "gpu_memory", f"the GPU memory of the ended processes was not released: {why}")
        return
    if not outcome.ok:
        builder.note(f"the GPU memory is not released ({why}); continuing anyway")
    if plan.need_bytes is not None:
        wait_for_room(builder, plan, plan.need_bytes)
    elif plan.needs_gpu:  # nothing is started on a lost GPU
        gone = builder.state.health.gpus_usable is False or builder.state.watch.gpu_fault is None
        reason = "no GPU of this run answers; it continues when one does"
        if not gone:
            reason = "the GPU of this run is lost until it is reset; it continues when it was gone and answers again"
        how = (
            f"see nvidia-smi; a reset or a reboot brings it back (`{builder.typed('resume')}` does not wait). To "
            f"go on with another GPU: `{builder.typed('stop')}`, and start again with CUDA_VISIBLE_DEVICES or "
            "run.gpus set to it"
        )
        waiting = run_states.BackingOff(replace(plan, needs_gpu=False), gpu_gone=gone)
        builder.move("no_gpu", waiting, reason, Why("gpu_lost"))
        builder.notify("warning", "held: the GPU is lost", f"{reason}\n{how}", incident=plan.incident)
    else:
        choose(builder, plan)


def on_gpus(builder: StepBuilder, machine: run_states.BackingOff) -> None:
    """A sample of the GPUs came: go on if one of the run is waited for and answers again."""
    if builder.state.health.gpus_usable is False and machine.gpu_gone is False:
        builder.set(machine=replace(machine, gpu_gone=True))
    elif builder.state.health.gpus_usable and machine.gpu_gone:
        builder.note("a GPU of this run answers again")
        choose(builder, machine.plan)


def wait_for_room(builder: StepBuilder, plan: run_states.RestartPlan, need_bytes: float) -> None:
    """Start nothing until ``need_bytes`` are free on the disk: a trainer that cannot save loses all its work."""
    free, output_dir = builder.state.health.host.disk_free_bytes, builder.knowledge.output_dir
    need, then = sizes_apart(need_bytes, free)
    where = f" in {output_dir}" if output_dir else ""
    reason = f"the disk is full; it continues when {need} are free{then and f' ({then} were)'}{where}"
    why = Why("disk_full", need_bytes=need_bytes, free_bytes=free)
    how = f"make room: `{typed('checkpoints prune', output_dir or 'DIR', '--keep', 'N')}` shows what could go"
    if not has_inodes(builder.state.health.host.disk_free_inodes):
        reason = "no more files can be created on the disk (no free inodes); it continues when some are deleted"
        why = Why("no_inodes")
        how = "`df -i` shows it; caches and folders with many small files take the most"
    builder.close_all("the disk is full", findings.CLASS)
    builder.move("no_room", run_states.BackingOff(replace(plan, need_bytes=None), need_bytes=need_bytes), reason, why)
    builder.notify("warning", "held: the disk is full", f"{reason}\n{how}", incident=plan.incident)


def on_room(builder: StepBuilder, machine: run_states.BackingOff, sample: HostSample) -> None:
    """Go on if the sample shows the room that is waited for."""
    if machine.need_bytes is None or machine.until_t is not None:
        return
    if (sample.disk_free_bytes or 0.0) >= machine.need_bytes and has_inodes(sample.disk_free_inodes):
        builder.note("the disk has space again")
        choose(builder, machine.plan)


# When a restart counts as successful, and what the failure cost.
#
# A step closes the incident of the failure; if the attempt was told to resume, it is said whether that took effect
# (resume_check.py). A count that begins anew ends nothing: the resume point is copied aside, and the training goes on.

COUNTS_ANEW = "counts_anew"
"""Class of the incident (kind *resume*) while nothing shows whether the resume was taken."""
CHECKS = (
    "check that the script uses the path it is given, wants a file or a directory, and has no option against it",
    'a script that restores weights only needs a preset with resume = "weights" (docs/presets.md)',
    '[restart] if_resume_not_taken = "go_on" lets such an attempt start over',
)
"""What to look at if a resume did not take effect."""


def on_beat(builder: StepBuilder) -> None:
    """A step was made: check the resume, and close the incidents of earlier attempts if it took effect."""
    reading = main_reading(builder.state).certain
    attempt, shows = resume_check.check_count(builder.attempt, reading)
    anew = shows == "anew" or (shows == "unclear" and resume_check.begins_anew(attempt, reading))
    first = anew and not attempt.counts_anew
    if first:
        # Its place is counted on from the resume point.
        at = attempt.resumed_at or 0
        position = None if attempt.step is None else at + attempt.step
        attempt = replace(attempt, counts_anew=True, offset=at, position=position)
    point, kept = builder.checkpoint(attempt.resume_from), builder.state.saved.found_resume.kept
    gone = point is None and builder.open_of(VANISHED) is not None
    found = resume_check.judge(attempt, reading, gone=gone) if shows in {"anew", "unclear"} else None
    if first and point is not None and point.kept is None and (kept is None or kept[0] != point.path):
        # Also if the loss goes on: saves of the new count may have the names of those before.
        why = f"copy {base_name(point.path)} aside: the trainer counts from the beginning and may write over it"
        after = next((i.id for i in builder.state.journal.incidents if _is_answered(i, attempt)), None)
        attempt = replace(attempt, aside=builder.decide(CopyAside, why, incident=after, paths=(point.path,)))
    if found is None and shows in {"anew", "unclear"} and resume_check.awaits_losses(attempt, reading):
        shows = "open"
    if shows in {"none", "taken"} and attempt.number > 1 and main_reading(builder.state).now.loss_is_nan:
        shows = "open"  # it may have loaded the NaN, so nothing is recovered until a loss is a number
    verdict: str = "unclear" if shows == "anew" else shows
    if found is not None:
        verdict = "taken" if found.went_on else "ignored"
    builder.set(attempt=replace(attempt, resume_verdict=verdict))
    match verdict:
        case "open":
            return
        case "ignored" if found is not None:
            if _is_ended(builder, f"resume did not take: {found.why}"):
                return
            _warn(builder, f"resume did not take: {found.why}")
        case "unclear" if attempt.counts_anew:
            counts = "neither its config nor its log names the file"
            if not attempt.weights_only:
                counts = f"told to resume at step {attempt.resumed_at}, the trainer counts from {attempt.first_step}"
            known = f"whether {name_of(attempt.resume_from)} was restored is not known: {counts}"
            _warn(builder, f"{known}, and nothing else shows it yet")
        case "unclear" if attempt.resumed_at:
            builder.note(
                f"whether the resume from {name_of(attempt.resume_from)} took effect cannot be seen in its output"
            )
        case "taken" if found is not None:
            _proved(builder, found)
        case "taken":
            resume_choice.note_taken(builder)
            builder.note(resume_check.resume_in_words(attempt), "" if attempt.elsewhere else "resume")
        case _:
            pass
    _recover(builder)


def _is_answered(incident: Incident, attempt: AttemptProgress) -> bool:
    """Whether the attempt is the answer to this incident, which its training closes."""
    before = incident.kind in {"crash", "hang", "resume"} and incident.attempt < attempt.number
    return before and not resume_check.stays_open(incident)


def on_put_aside(builder: StepBuilder, outcome: Outcome) -> None:
    """The resume point was copied aside while the trainer runs, or could not be."""
    path, folder = builder.attempt.resume_from, str(outcome.data.get("folder") or "")
    builder.change("attempt", aside=None)
    if outcome.ok:
        builder.mark((path,), kept=folder)
        builder.note(f"{name_of(path)} was copied to {folder or 'a folder of its own'}")
    else:
        builder.note(f"{name_of(path)} cannot be copied aside: {outcome.detail or 'no reason given'}")


def _proved(builder: StepBuilder, found: resume_check.Evidence) -> None:
    attempt = builder.attempt
    resume_choice.note_taken(builder, used=found.by != "words")  # a script may load a file and not use it
    again = f"; its count begins anew, and counts on from step {attempt.resumed_at}" if attempt.counts_anew else ""
    builder.note(f"{VERIFIED}{found.why}{again}", "resume")
    builder.close_where(found.why, lambda i: i.class_ == COUNTS_ANEW and i.attempt == attempt.number)


def note_name_in_log(state: JudgeState, text: str) -> JudgeState:
    """The state after log text: note it if the text names the checkpoint that the trainer was told to resume from."""
    attempt = state.attempt
    if attempt.resume_from is None or attempt.says_so or base_name(attempt.resume_from) not in text:
        return state
    named = attempt.named if "log" in attempt.named else (*attempt.named, "log")
    known = replace(attempt, named=named, says_so=resume_check.says_that_it_loads(text, attempt.resume_from))
    return replace(state, attempt=known)


def _recover(builder: StepBuilder) -> None:
    state = builder.state
    attempt = state.attempt
    if attempt.is_unplaced and attempt.former.fresh_step is not None:
        return  # the head of an epoch; where it trains on is told by its first step
    taken, resumed_at = attempt.resume_verdict == "taken", resume_check.went_on_after(attempt)
    if resumed_at is None and (attempt.resume_from is None or attempt.resume_verdict == "ignored"):
        resumed_at = 0
    elif (taken or attempt.weights_only) and (attempt.elsewhere or not attempt.resume_spread):
        resumed_at = attempt.resumed_at
    if resumed_at and (taken or attempt.resume_from is None) and resumed_at > (state.policy.budget.best or 0):
        builder.change("policy.budget", best=resumed_at, unsaved=0)  # of a save that nobody saw, or understood
    lost = lost_steps(state.policy.failed_position, resumed_at, attempt.stride)
    # If the printed step starts again, the run's own count is the one that continues.
    own = attempt.weights_only or attempt.elsewhere or attempt.counts_anew
    resumed_step = attempt.resumed_at if own else attempt.resume_step
    again = "" if lost is None else f", {plural(lost, 'step')} lost"
    anew = "; its steps and saves count from zero again" if taken and attempt.counts_anew else ""
    ending = f"recovered: {_how(attempt, resumed_step)}{again}{anew}"
    for incident in state.journal.incidents:
        if not _is_answered(incident, attempt):
            continue
        builder.close_incident(
            incident.id,
            ending,
            lost_steps=lost,
            resumed_from=attempt.resume_from if taken else None,
            resumed_step=resumed_step if taken else None,
        )
        builder.notify("recovery", "recovered", ending, incident=incident.id)


def _how(attempt: AttemptProgress, step: int | None) -> str:
    """Where the attempt trains on, as far as its output shows it."""
    if (after := resume_check.went_on_after(attempt)) is not None:
        return f"resumed by itself at step {after}"
    if attempt.resume_from is None or attempt.resume_verdict == "ignored":
        return "started over"
    name, at = name_of(attempt.resume_from), "" if step is None else f" at step {step}"
    if attempt.resume_verdict == "taken":
        return f"{'resumed by itself' if attempt.elsewhere else f'resumed from {name}'}{at}"
    if attempt.told_resume is False:
        return "started over"
    return f"it trains again; whether it resumed from {name} cannot be seen"


def _is_ended(builder: StepBuilder, reason: str) -> bool:
    """End an attempt that is known to train from the beginning, if it may write over a better checkpoint."""
    known, told = builder.checkpoint(builder.attempt.resume_from), builder.attempt.told_resume
    goes_on = builder.settings.restart.if_resume_not_taken == "go_on" or told is False
    if goes_on or known is None or not known.own or not checkpoint_index.is_verified(known):
        return False
    number = builder.open_incident("resume", "started_over", reason)
    builder.notify("incident", "resume did not take", reason, incident=number)
    plan = run_states.RestartPlan(
        reason=f"{reason}; end it before it overwrites anything",
        incident=number,
        ending=reason,
        advice=(*resume_choice.advice(builder), *CHECKS),
    )
    stop(builder, "give_up", plan)
    return True


def _warn(builder: StepBuilder, why: str) -> None:
    attempt = builder.attempt
    if attempt.told_resume is False:
        name = name_of(attempt.resume_from)
        why = f"{name} cannot be passed to the command (write {{resume}} where its path belongs): {why}"
    known = attempt.resume_verdict == "ignored"
    number = builder.open_incident("resume", "started_over" if known else COUNTS_ANEW, why, severity="warning")
    title = "started over" if known else "the count began anew"
    builder.notify("warning", title, f"{why}; it trains on", incident=number)


def saved(builder: StepBuilder, known: checkpoint_index.KnownCheckpoint) -> None:
    """A complete checkpoint of this run came: it may show that the resume was taken, and restore the restart budget."""
    attempt = builder.attempt
    if attempt.counts_anew and attempt.resume_verdict in {"open", "unclear"} and known.step is not None:
        found = resume_check.of_save(attempt, known.step)
        if found is not None:
            builder.change("attempt", resume_verdict="taken")
            _proved(builder, found)
    before = builder.state.policy.budget
    position = known.latest if known.latest is not None else known.step
    if position is not None and not builder.attempt.place_is_sure:
        position -= builder.attempt.resumed_at or 0  # else one that begins anew each time would be progress
    new = memory.saved(before, position, known.epochs_done)
    if new is before:
        return
    builder.change("policy", budget=new)
    builder.change("attempt", saved=True)
    if before.used:
        builder.fact(BudgetChanged(used=new.used, max=builder.settings.restart.max_restarts))


# The first losses after a resume, beside those of the run before it: whether the weights were restored, too.
#
# A resume is proved by the first printed step (``restarts.py``). If the loss shows afterwards that the training
# began again, the proof is withdrawn and a person is told; nothing is ended and nothing restarted for it.

WHAT_TO_DO = (
    "Load the weights and the optimizer from the checkpoint before the first step of a resumed run. What was saved "
    "before the resume holds the training of before; what is saved since then holds the one that began again."
)


def settings_of(state: JudgeState, profile: str | None) -> tuple[str, ...]:
    """What trainwatch sets for a launch that may change what a printed loss means: its profile and its remedies."""
    changes = (f"{c.where} {c.key} {c.after}" for c in merged(state.policy.applied) if c.where != "env")
    return (f"profile {profile}", *sorted(changes))


def former(state: JudgeState, settings: tuple[str, ...], told: ToldLength | None = None) -> Former:
    """What the log told so far, for an attempt that begins now with ``settings``. ``told``: the settings' length."""
    attempt, last, progress = state.attempt, state.attempt.former, state.progress
    opening = main_reading(state).now.opening
    anew = attempt.resume_from is None and not attempt.adopted and resume_check.went_on_after(attempt) is None
    fresh = anew and bool(opening.marks) and not opening.gap
    return Former(
        total=progress.run_total_steps,
        run_total=run_total(state) or last.run_total,
        may_be_of_an_epoch=may_be_of_an_epoch(state, told),
        bar_total=progress.total_steps if opening.marks else last.bar_total,
        pace_s=progress.sec_per_step or last.pace_s,
        shows_losses=opening.shows_losses if opening.counted else last.shows_losses,
        losses=_losses(state, settings),
        epoch=progress.epoch,
        printed_every=attempt.printed_every,
        widest_gap=resume_check.widest_gap(opening.counted) or last.widest_gap,
        fresh_step=opening.first_step if fresh else last.fresh_step,
        fresh_epoch=opening.first_epoch if fresh else last.fresh_epoch,
    )


def _losses(state: JudgeState, settings: tuple[str, ...]) -> LossCurve:
    """The losses of the run so far; none if those of an attempt with ``settings`` do not compare."""
    attempt, reading = state.attempt, main_reading(state).now
    if settings != attempt.loss_settings and attempt.number:
        return LossCurve()
    if not reading.curve.seen:
        return attempt.former.losses
    if attempt.resume_from is None or attempt.resume_verdict == "ignored" or attempt.began_again:
        return replace(reading.curve, points=moved(reading.curve.points, attempt.offset or 0), last=None)
    if attempt.resume_verdict != "taken" or attempt.resumed_at is None:
        return LossCurve()
    before = tuple(p for p in attempt.former.losses.points if p.step <= (attempt.resumed_at or 0))
    points = thinned((*before, *moved(reading.curve.points, attempt.offset or 0)))
    return replace(attempt.former.losses, points=points)


def is_due(state: JudgeState) -> bool:
    """Whether the resume of this attempt was proved by its steps, and its first losses can be compared now.

    A start from weights alone begins the optimizer, the schedule and the count of the steps anew, and says so: its loss
    may rise again with weights that were restored.
    """
    attempt = state.attempt
    if attempt.weights_only or attempt.losses_compared or attempt.resume_verdict != "taken":
        return False
    return bool(attempt.former.losses.first) and len(main_reading(state).certain.curve.first) >= FEW


def compare(builder: StepBuilder) -> None:
    """Compare them, once for each attempt."""
    attempt, reading = builder.attempt, main_reading(builder.state).certain
    builder.change("attempt", losses_compared=True)
    found = resume_check.losses_of(attempt, reading)
    if found is None or not found.surely_anew:
        return
    builder.change("attempt", began_again=True)
    builder.change("saved.found_resume", proven=False)
    name = name_of(attempt.resume_from)
    said = f"the step was restored from {name}, the weights apparently not"
    if attempt.counts_anew:
        said = f"{name} was named as loaded, but steps and loss begin again"
    numbers = f"loss {found.words}"
    builder.note(f"the resume from {name} is not verified any more: the loss does not go on")
    reason, evidence = f"{said}: {numbers}", (Evidence(what=numbers),)
    class_ = resume_check.WEIGHTS_NOT_LOADED
    incident = builder.open_incident("resume", class_, reason, evidence=evidence, explanation=WHAT_TO_DO)
    builder.notify("incident", "the weights were not restored", f"{reason}\n{WHAT_TO_DO}", incident=incident)
