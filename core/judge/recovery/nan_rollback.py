"""NaN: when it is acted on, and what is known of it at the end of an attempt.

Sources: runs that trained on NaN for days and ended with exit status 0. Training does not come back from NaN weights,
so each further step is lost. Known false alarms: an overflowing step under mixed precision prints NaN and is skipped;
an average keeps one such value (text/loss_run.py tells both apart).
"""

from typing import Literal

import msgspec

from ...model.attempt import DIVERGING, Evidence
from ...model.checkpoint import Verdict
from ...model.decision import CaptureStacks
from ...model.observation import CheckpointValues
from ...model.text import plural
from ..failure.diagnosis import hidden_failure
from ..hang import pauses
from ..memory import Cause, Failed
from ..resume import checkpoint_index
from ..resume.checkpoint_index import KnownCheckpoint, values_of, with_values
from ..run_states import RestartPlan, is_live, is_watched
from ..state import JudgeState, StepBuilder
from ..text.loss_run import LossRun
from ..text.reading import Reading
from . import policy
from .apply import answer_failure

CLASS = "nan_loss"
GOES_ON_S = 10.0
"""A trainer that lives so long after a checkpoint was found lost goes on. One that ends before ends by itself.

Values are read in a thread of their own, and an end is seen seconds late: either may come first. What an attempt ended
of must not depend on that, so its own end counts. Ten seconds of steps are little beside what the reading took.
"""
DYING_S = 60.0
"""The same if the last lines show a failure: it may still free its GPU, or wait for its other ranks."""
LAST_STEPS = 5
"""NaN steps in a row at the end of an attempt that are no accident. A gradient scaler skips a single one."""


def on_nan_steps(builder: StepBuilder, read: Reading) -> None:
    """The newest printed loss is NaN: act if it has been for ``[nan] steps``, as ``[nan] action`` says."""
    state, setting, losses = builder.state, builder.settings.nan, read.losses
    if not losses.is_nan_for(setting.steps) or _is_stained(state, losses):
        return
    since = "" if losses.nan_from is None else f", since step {losses.nan_from}"
    act(builder, f"the loss was NaN for {plural(losses.nan_steps, 'step')}{since}", nan_position(state, read))


def on_divergence(builder: StepBuilder) -> None:
    """The loss had fallen and is far above its floor for good: told, and acted on if ``[loss] diverged`` says so.

    Only a loss ``FAR`` above its floor is acted on: what else rises may come back, as after a warm restart.
    """
    state, seen = builder.state, builder.state.loss
    since_step = seen.since_step if seen.lasting else state.attempt.position
    far = f"{state.progress.loss:.3g}, its lowest was {seen.floor:.3g}"
    reason = f"the loss diverged: it is {far}"
    incident = builder.open_incident("loss", DIVERGING, reason, step=since_step)
    builder.notify("warning", reason, "", incident)
    action = builder.settings.loss.diverged
    if action != "warn" and seen.is_far:
        act(builder, reason, since_step, seen.since_t, action)


def act(
    builder: StepBuilder,
    reason: str,
    position: int | None,
    lost_t: float | None = None,
    diverged: Literal["rollback", "stop"] | None = None,
) -> None:
    """The training is lost since ``position``: end the attempt and go back, or only report it, as the settings say.

    ``lost_t``: run time of the first checkpoint that is not finite, or since which the loss is ``diverged``, which is
    what the settings say of that.
    """
    state, action = builder.state, diverged or builder.settings.nan.action
    number = state.attempt.number
    before_t = min((t for t in (state.attempt.nan_t, lost_t) if t is not None), default=None)
    if any(i.class_ == CLASS and i.attempt == number for i in state.incidents):
        return  # reported, and the settings say that nothing follows
    explanation = builder.catalogue.class_of(CLASS).explanation
    if action == "warn":
        incident = builder.open_incident("loss", CLASS, reason, explanation=explanation)
        builder.notify("warning", "NaN", f'{reason}; it trains on ([nan] action = "warn")', incident)
        return
    incident = builder.open_incident("crash", CLASS, reason, evidence=(Evidence(what=reason),), explanation=explanation)
    what = "loss" if diverged else "NaN"
    builder.notify("incident", f"{'loss diverged' if diverged else 'NaN'} ({CLASS})", reason, incident)
    builder.decide(
        CaptureStacks, f"take evidence before the attempt is ended for its {what}", incident=incident, attempt=number
    )
    policy.remember(builder)
    failed = Failed(
        cause=Cause(kind="nan", class_=CLASS, attempt=number, position=position, diverged=diverged),
        incident=incident,
        reason=reason,
        advice=builder.catalogue.class_of(CLASS).remedies,
    )
    back = f"back to the last checkpoint from before the {'divergence' if diverged else 'NaN'}"
    answer_failure(builder, failed, RestartPlan(reason=back, incident=incident, before_t=before_t))


def on_values(builder: StepBuilder, read: CheckpointValues) -> None:
    """The values of a checkpoint were read. One that is newly not finite is lost, and so is what follows it.

    Nothing is ended yet: ``on_due`` does once the trainer is known to go on.
    """
    before = builder.index
    index = with_values(before, read.path, read.nonfinite, read.nan, read.reason)
    builder.set(checkpoints=index)
    for known in index.known:
        was = checkpoint_index.find(before, known.path)
        if was is not None and was.bad != known.bad:
            verdict: Verdict = "complete" if known.bad is None else "nonfinite"
            builder.tell_checkpoint(known, verdict)
    state = builder.state
    if state.attempt.lost_at is None and is_live(state.machine) and _first_lost(state) is not None:
        builder.set(attempt=msgspec.structs.replace(state.attempt, lost_at=pauses.now(state.time)))


def is_due(state: JudgeState) -> bool:
    """Whether a checkpoint that was read makes the training lost, and the trainer lived on after that."""
    at = state.attempt.lost_at
    return at is not None and is_watched(state.machine) and pauses.now(state.time) - at >= GOES_ON_S


def on_due(builder: StepBuilder) -> None:
    """Act on the first lost checkpoint. A trainer whose last lines show a failure is left to end by itself."""
    state, at = builder.state, builder.attempt.lost_at
    assert at is not None
    shown = hidden_failure(state.diagnosis, builder.catalogue)  # after the last steps, and not the NaN
    if pauses.now(state.time) - at < DYING_S and shown is not None and shown.failure != CLASS:
        return
    builder.set(attempt=msgspec.structs.replace(state.attempt, lost_at=None))
    lost = _first_lost(state)
    if lost is None:
        return
    found = values_of(state.checkpoints, lost)
    more = "" if len(found.new) == 1 else f" and {len(found.new) - 1} other tensors"
    name = checkpoint_index.base_name(lost.path)
    finite = ", finite in an earlier checkpoint" if found.compared else ""
    act(builder, f"{name} holds NaN or Inf in {found.new[0]}{more}{finite}", lost.position, lost.t)


def _first_lost(state: JudgeState) -> KnownCheckpoint | None:
    """The first checkpoint of this attempt that is not finite and was, or is while the loss is NaN."""
    index, attempt = state.checkpoints, state.attempt
    for known in sorted(index.known, key=checkpoint_index.age_of):
        ours = known.own and known.complete and known.left is None and known.t >= attempt.start_t
        if not ours or not known.nonfinite:
            continue
        found = values_of(index, known)
        if found.new and (found.compared or attempt.nan_t is not None):
            return known
    return None


def _is_stained(state: JudgeState, losses: LossRun) -> bool:
    """Whether the printed loss is an average that one NaN value made NaN, and the weights are finite.

    It moved like an average before, and the checkpoints that were saved since are finite.
    """
    since = state.attempt.nan_t
    if not losses.is_likely_average or since is None:
        return False
    saved = [k for k in state.checkpoints.known if k.own and k.complete and k.t > since and k.nonfinite is not None]
    return bool(saved) and not any(k.nonfinite for k in saved)


def nan_position(state: JudgeState, read: Reading) -> int | None:
    """Position of the run at which the loss became NaN; where it is now if it is not."""
    at, first = state.attempt.position, first_step(read)
    if at is None:
        return None
    return max(0, at - max(0, read.losses.nan_steps - 1)) if first is None else (state.attempt.offset or 0) + first


def first_step(reading: Reading) -> int | None:
    """The step of the newest run of NaN losses, as the log counts; None if it cannot be told.

    Many lines may be read at once, and of the newest step only half of its line.
    """
    at = reading.progress.run_step
    return None if at is None else max(0, at - max(0, reading.losses.nan_steps - 1))


def began_t(state: JudgeState, read: Reading) -> float:
    """Run time since which saves are not finite: that of the first save of a step after the first NaN step, else now.

    A save is seen at once; the lines of fast steps are read many at a time, so they can come after it.
    """
    at, start_t = nan_position(state, read), state.attempt.start_t
    saved = (
        k.t
        for k in state.checkpoints.known
        if k.own and k.t >= start_t and k.position is not None and at is not None and k.position > at
    )
    return min(saved, default=state.time.t)


def ended_in_nan(state: JudgeState) -> str | None:
    """Why the end of the attempt cannot be a success, as a sentence; None if nothing shows NaN.

    An average that is NaN shows nothing: one skipped batch is enough for it.
    """
    for read in (state.reading, *state.other_logs.values()):
        if read.losses.is_nan_for(LAST_STEPS) and not _is_stained(state, read.losses):
            return f"the loss was NaN for the last {read.losses.nan_steps} steps"
    return None


def before_nan_t(state: JudgeState) -> float | None:
    """Run time before which a checkpoint has to be complete for its weights not to be NaN; None if the loss is finite.

    A single NaN step at the end proves nothing (LAST_STEPS), unless the attempt ended for it.
    """
    number = state.attempt.number
    ended_for_it = any(cause.class_ == CLASS and cause.attempt == number for cause in state.history)
    return state.attempt.nan_t if ended_for_it or ended_in_nan(state) is not None else None
