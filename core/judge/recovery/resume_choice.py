"""Which checkpoint the next attempt resumes from, and what follows if there is none.

The output folder is listed first: what is known or was found so far need not be all. The newest usable one is chosen
and verified, and the folder is listed again: a newer one may have become complete meanwhile. One that turns out bad is
not taken again, and the next older one is chosen; one that cannot be read at that moment is read again later.
"""

from typing import get_args

import msgspec

from ...model.checkpoint import Verdict
from ...model.decision import ListCheckpoints, VerifyCheckpoint
from ...model.fact import StateChanged
from ...model.observation import Outcome
from ...model.progress import Why
from ..resume import checkpoint_index, resume_point
from ..resume.checkpoint_index import KnownCheckpoint, base_name, is_verified, values_of
from ..run_states import WORDS, Preparing, RestartPlan
from ..scales import MINUTE_S, TRIES, WHILE_S
from ..state import StepBuilder
from . import unclear_states
from .attempts import hold, launch_after_delay

replace = msgspec.structs.replace

UNREAD = "unread"
"""The verification itself failed: no verdict."""
UNREAD_WAITS_S = (10.0, 60.0, 300.0)
"""Waits before a resume point that could not be read is verified again; the last one repeats."""


def choose(builder: StepBuilder, plan: RestartPlan) -> None:
    """Have the output folder listed, then choose a resume point; a launch that resumes from nothing needs neither."""
    if plan.fresh or builder.knowledge.preset.resume == "none":
        launch_after_delay(builder, replace(plan, path=None, step=None))
    else:
        _list(builder, plan, MINUTE_S)


def _list(builder: StepBuilder, plan: RestartPlan, limit_s: float, *, held: str = "") -> None:
    state, reason = builder.state, "list the checkpoints before the launch"
    saved = state.policy.budget.best is not None or any(k.own and k.complete for k in state.saved.checkpoints.known)
    order = builder.decide(ListCheckpoints, reason, incident=plan.incident, limit_s=limit_s, expected=saved)
    listing = Preparing("list", order, plan, why=held, folders=len(state.saved.outputs.known))
    builder.move("list", listing, held or "listing the checkpoints in the output folder")


def on_listed(builder: StepBuilder, machine: Preparing, outcome: Outcome) -> None:
    """The folder is listed: choose. Or it cannot be listed: a person may name a checkpoint, a restart waits."""
    plan, reason = machine.plan, machine.why
    if outcome.ok or plan.wanted is not None:
        if reason:
            again = "the output folder is listed again"
            builder.note(again)
            builder.fact(StateChanged(state=WORDS["preparing"], reason=again))
        if outcome.ok and len(builder.state.saved.outputs.known) > machine.folders:
            _list(builder, plan, MINUTE_S)  # the search found a folder that was not listed yet
        else:
            _choose_from_list(builder, plan)
        return
    if not reason:
        why, named = outcome.detail or "no reason given", builder.typed("resume", "--from", "CHECKPOINT")
        reason = f"the checkpoints cannot be listed, so the newest is not known: {why}"
        how = f"it goes on when they can be; `{named}` or `--fresh` does not wait"
        builder.notify("warning", "held: the checkpoints cannot be listed", f"{reason}\n{how}", incident=plan.incident)
        builder.note(reason)
        builder.fact(StateChanged(state=WORDS["preparing"], reason=reason, why=Why("not_listed")))
    _list(builder, plan, WHILE_S, held=reason)


def _choose_from_list(builder: StepBuilder, plan: RestartPlan) -> None:
    """Choose a resume point and have it verified; without one, hold, start over or give up, as the settings say."""
    unclear_states.recognise(builder)
    path, known = builder.resume_point(plan)
    if plan.wanted is None:  # the writer of newer damaged ones is gone and cannot mend them
        good = known if known is not None and is_verified(known, path) else None
        newer = resume_point.damaged_after(builder.index, good, before_t=plan.before_t)
        damaged = [(k.path, *k.damage, k.bad is not None) for k in newer if k.damage is not None]
        found = [_set_bad(builder, file, verdict, why, "skipped", told=told) for file, verdict, why, told in damaged]
        if found:
            title = f"checkpoint {damaged[0][1]}" if len(found) == 1 else f"{len(found)} checkpoints are damaged"
            builder.notify("warning", title, "\n".join(reason for _, reason in found), incident=found[0][0])
    # What a trainer that chooses by itself would take, and nobody has read: whether it holds the NaN is read first.
    of_nan = plan.before_t is not None and plan.wanted is None and not builder.lost_by_divergence
    front = builder.in_front(path, plan.before_t) if of_nan else ()
    unread = [k for k in front if k.nonfinite is None and k.complete and k.bad is None]
    if unread and builder.settings.checkpoints.verify == "deep" and unread[-1].path != plan.read:
        newest = unread[-1].path
        _verify(builder, replace(plan, path=newest, verified=None, read=newest), "what the trainer may take")
        return
    if unclear_states.held_over_bad(builder, plan, path, known):
        return
    if path is None:
        unclear_states.begin_anew(builder, replace(plan, verified=None))
        return
    step, time = (known.step, checkpoint_index.time_of(known)) if known is not None else (None, None)
    if plan.verified is not None:
        # Another writer must not hold it back for ever.
        if plan.verified == (path, time) or plan.newer >= TRIES:
            unclear_states.keep_then_launch(builder, plan)
            return
        builder.note(f"{base_name(path)} is newer than the verified {base_name(plan.verified[0])}")
        plan = replace(plan, verified=None, newer=plan.newer + 1)
    if (
        plan.wanted is None
        and known is not None
        and known.holds == "weights"
        and not builder.support.weights_are_enough
    ):
        builder.note(
            f"{base_name(path)} contains only weights, and there is no complete training state: the trainer starts "
            "from these weights, without the state of optimizer and schedule"
        )
    _verify(builder, replace(plan, path=path, step=step, verified=(path, time)), "the resume point")


def _verify(builder: StepBuilder, plan: RestartPlan, what: str) -> None:
    what, deep = f"{what} {base_name(plan.path or '')}", builder.settings.checkpoints.verify == "deep"
    reason = f"verify {what} before the launch"
    order = builder.decide(VerifyCheckpoint, reason, incident=plan.incident, path=plan.path, deep=deep)
    builder.move("verify", Preparing("verify", order, plan), f"verifying {what}")


def on_verify_outcome(builder: StepBuilder, machine: Preparing, outcome: Outcome) -> None:
    """Launch from the verified resume point unless a newer one came; choose another one if it is bad or gone."""
    plan, path = machine.plan, machine.plan.path
    assert path is not None
    verdict = str(outcome.data.get("verdict") or ("complete" if outcome.ok else UNREAD))
    step = outcome.data.get("step")
    if _is_finite_enough(builder, plan, path, verdict, outcome):
        builder.note(f"{outcome.data.get('reason')}: it is meant (so do earlier checkpoints, or it is Inf alone)")
        verdict = "complete"
    if verdict == "complete":
        known = builder.checkpoint(path)
        is_of_run = isinstance(step, int) and not (known is not None and known.of_epoch)
        _verified(builder, replace(plan, step=step if is_of_run else plan.step))
        return
    why, left = str(outcome.data.get("reason") or outcome.detail or verdict), verdict == "opaque"
    if outcome.data.get("understood") is False and not left:
        # One that lacks a member must be named by a person, unless all saves of its trainer lack it.
        left = plan.wanted is not None or resume_point.is_left_to_the_trainer(builder.index, path)
    if left:
        if path != plan.read:
            builder.note(
                f"{base_name(path)} cannot be verified ({why}): the trainer is given it and reads it by itself"
            )
        _verified(builder, plan)
        return
    plan = replace(plan, verified=None)
    if plan.wanted is None and verdict == "gone":
        builder.note(f"{base_name(path)} was removed")
        builder.change("saved", checkpoints=checkpoint_index.without(builder.index, path))
        choose(builder, replace(plan, path=None, step=None))
        return
    if plan.wanted is None and verdict in {UNREAD, "writing"}:
        _read_later(builder, plan, str(outcome.detail or verdict))
        return
    number, reason = _set_bad(builder, path, verdict, why, "skipped" if plan.wanted is None else "refused")
    if plan.wanted is not None:
        hold(builder, plan, "refused_checkpoint", reason, incident=number)
        return
    builder.notify("warning", f"checkpoint {verdict}", reason, incident=number)
    choose(builder, replace(plan, path=None, step=None))


def _is_finite_enough(builder: StepBuilder, plan: RestartPlan, path: str, verdict: str, outcome: Outcome) -> bool:
    """Whether it is not finite and none the worse for it. What was read of its values is remembered."""
    if verdict not in {"complete", "nonfinite"} or "nonfinite" not in outcome.data:
        return False
    names, nan = outcome.data["nonfinite"], outcome.data.get("nan", ())
    index = checkpoint_index.with_values(builder.index, path, names, nan, outcome.data.get("reason"))
    builder.change("saved", checkpoints=index)
    known = checkpoint_index.find(index, path)
    if verdict == "complete" or known is None:
        return False
    values = values_of(index, known)
    return bool(known.nonfinite) and not values.new and (plan.before_t is None or values.compared)


def _verified(builder: StepBuilder, plan: RestartPlan) -> None:
    """Wait if the plan says so; then list again, because a newer one may have become complete meanwhile."""
    if plan.path is not None and plan.path == plan.read:
        plan = replace(plan, path=None, step=None)
    if plan.delay_s > 0.0:
        launch_after_delay(builder, plan)
    else:
        _list(builder, plan, MINUTE_S)


def _read_later(builder: StepBuilder, plan: RestartPlan, why: str) -> None:
    """The resume point cannot be read now, which says nothing about it: wait, and choose again."""
    delay_s = UNREAD_WAITS_S[min(plan.unread, len(UNREAD_WAITS_S) - 1)]
    reason = f"{base_name(plan.path or '')} cannot be verified now: {why}"
    if plan.unread == 0:
        how = f"it is attempted again; `{builder.typed('resume', '--from', 'CHECKPOINT')}` takes another one"
        title = "held: the resume point cannot be verified"
        builder.notify("warning", title, f"{reason}\n{how}", incident=plan.incident)
    builder.note(reason)
    again = replace(plan, path=None, step=None, unread=plan.unread + 1, delay_s=max(delay_s, plan.delay_s))
    launch_after_delay(builder, again)


def _set_bad(
    builder: StepBuilder, path: str, verdict: str, why: str, ending: str, *, told: bool = False
) -> tuple[int, str]:
    """Never resume from a checkpoint until it is written again, and open an incident. Returns its id and its reason.

    ``told``: the journal has its verdict.
    """
    if builder.checkpoint(path) is None:
        entry = KnownCheckpoint(path=path, t=builder.t, own=False, bad=why)
        builder.change("saved.checkpoints", known=(*builder.index.known, entry))
    elif not told:
        builder.mark((path,), bad=why)
        known = builder.checkpoint(path)
        if known is not None and verdict in get_args(Verdict):
            builder.tell_checkpoint(known, msgspec.convert(verdict, Verdict))
    builder.mark((path,), reported=True)
    reason = f"{base_name(path)} cannot be resumed from: {why}"
    return builder.open_incident("checkpoint", verdict, reason, severity="warning", ending=ending), reason
