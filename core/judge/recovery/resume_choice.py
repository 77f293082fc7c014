"""Which checkpoint the next attempt resumes from, and what follows if there is none.

The newest usable one is chosen and verified; one that turns out bad is not taken again, and the next older one is
chosen. A command that cannot be given a path would begin anew and write over the checkpoints of the run, so nobody
starts it by accident: no restart does by itself, nor does an operator's "resume". Known false alarm: a trainer that
finds its newest checkpoint by itself; ``[restart] if_not_told = "go_on"`` is for it.
"""

import msgspec

from ...model.checkpoints.checkpoint import Verdict
from ...model.decision import VerifyCheckpoint
from ...model.fact import CheckpointKnown
from ...model.observation import Outcome
from ..knowledge import Knowledge
from ..resume import checkpoint_index
from ..resume.checkpoint_index import KnownCheckpoint, base_name
from ..run_states import RestartPlan, Stopped, Verifying
from ..state import JudgeState
from ..step_builder import StepBuilder
from .attempts import give_up, launch_after_delay

replace = msgspec.structs.replace

NOT_RESUMABLE = (
    "write {resume} into the command where the path of a checkpoint belongs, as in --resume {resume}",
    "`trainwatch resume --fresh` begins anew all the same",
    '[restart] if_not_told = "go_on" starts it by itself: for a trainer that finds its newest checkpoint without help',
)
"""What a person can do about a command that cannot be given a checkpoint."""

_VERDICTS: dict[str, Verdict] = {
    "complete": "complete",
    "writing": "writing",
    "torn": "torn",
    "corrupt": "corrupt",
    "nonfinite": "nonfinite",
    "opaque": "opaque",
}


def choose(builder: StepBuilder, plan: RestartPlan) -> None:
    """Choose a resume point and have it verified; without one, start over or give up, as the settings say."""
    state, knowledge = builder.state, builder.knowledge
    if plan.fresh or knowledge.preset.resume == "none":
        launch_after_delay(builder, replace(plan, path=None, step=None))
        return
    first = state.attempt.resume_from
    path, known = plan.wanted, checkpoint_index.find(state.checkpoints, plan.wanted)
    if path is None:
        known = checkpoint_index.newest_verified(
            state.checkpoints, knowledge.resume_support, before_t=plan.before_t, keep=first
        )
        path = known.path if known is not None else None
        _report_damaged(builder, known)
    if (
        path is None
        and first is not None
        and knowledge.resume_support.forms
        and not checkpoint_index.find(state.checkpoints, first)
    ):
        path = first  # what the attempt itself resumed from, outside the watched directory
    if path is None:
        _start_over(builder, plan)
        return
    if (
        plan.wanted is None
        and known is not None
        and known.holds == "weights"
        and not knowledge.resume_support.weights_are_enough
    ):
        builder.note(f"{base_name(path)} contains only weights: there is no complete training state to resume from")
    order = builder.decide(
        VerifyCheckpoint,
        f"verify the resume point {base_name(path)} before the launch",
        incident=plan.incident,
        path=path,
        deep=knowledge.settings.checkpoints.verify == "deep",
    )
    step = known.step if known is not None else None
    verifying = Verifying(order=order, plan=replace(plan, path=path, step=step))
    builder.move("verify", verifying, f"verifying the resume point {base_name(path)}")


def _start_over(builder: StepBuilder, plan: RestartPlan) -> None:
    """No resume point: begin anew or give up, as the settings say."""
    why_not = why_not_resumable(builder.state, builder.knowledge)
    if why_not is not None:
        give_up(builder, why_not, plan.incident, NOT_RESUMABLE)
        return
    if not builder.knowledge.settings.restart.without_checkpoint:
        give_up(builder, "no checkpoint to resume from, and starting over is disabled", plan.incident)
        return
    other = checkpoint_index.newest_verified(builder.state.checkpoints, before_t=plan.before_t)
    why = None if other is None else builder.knowledge.resume_support.objection(other.shape, other.holds)
    if other is not None and why is not None:
        builder.note(f"it starts from the beginning: {base_name(other.path)} is complete, but {why}")
    launch_after_delay(builder, replace(plan, path=None, step=None))


def on_verify_outcome(builder: StepBuilder, machine: Verifying, outcome: Outcome) -> None:
    """Launch from the verified resume point, or choose the next older one."""
    plan = machine.plan
    assert plan.path is not None
    verdict = str(outcome.data.get("verdict") or ("complete" if outcome.ok else "corrupt"))
    step = outcome.data.get("step")
    if outcome.ok and verdict == "complete":
        launch_after_delay(builder, replace(plan, step=step if isinstance(step, int) else plan.step))
        return
    why = str(outcome.data.get("reason") or outcome.detail or verdict)
    number, reason = _set_bad(builder, plan.path, verdict, why, "skipped" if plan.wanted is None else "refused")
    if plan.wanted is not None:
        builder.close_incident(plan.incident, "held: the requested checkpoint cannot be used")
        builder.move("hold", Stopped(), reason)
        builder.notify("warning", "not resumed", reason, incident=number)
        return
    builder.notify("warning", f"checkpoint {verdict}", reason, incident=number)
    choose(builder, replace(plan, path=None, step=None))


def _report_damaged(builder: StepBuilder, chosen: KnownCheckpoint | None) -> None:
    """Report damaged checkpoints that are newer than the chosen one: their writer is gone and cannot finish them."""
    damaged = [
        (k.path, *k.damage)
        for k in checkpoint_index.damaged_after(builder.state.checkpoints, chosen)
        if k.damage is not None
    ]
    if not damaged:
        return
    found = [_set_bad(builder, *each, "skipped") for each in damaged]
    title = f"checkpoint {damaged[0][1]}" if len(found) == 1 else f"{len(found)} checkpoints are damaged"
    builder.notify("warning", title, "\n".join(reason for _, reason in found), incident=found[0][0])


def _set_bad(builder: StepBuilder, path: str, verdict: str, why: str, ending: str) -> tuple[int, str]:
    """Distrust a checkpoint and open an incident. Returns its id and its reason."""
    distrust(builder, path, why, verdict)
    reason = f"{base_name(path)} cannot be resumed from: {why}"
    return builder.open_incident("checkpoint", verdict, reason, severity="warning", ending=ending), reason


def distrust(builder: StepBuilder, path: str, why: str, verdict: str = "corrupt") -> None:
    """Never resume from a checkpoint until it is written again."""
    index = builder.state.checkpoints
    if checkpoint_index.find(index, path) is None:
        entry = KnownCheckpoint(path=path, t=builder.t, own=False, bad=why)
        builder.set(checkpoints=replace(index, known=(*index.known, entry)))
        return
    builder.set(checkpoints=checkpoint_index.mark_bad(index, path, why))
    known = checkpoint_index.find(builder.state.checkpoints, path)
    if known is not None and verdict in _VERDICTS:
        checkpoint = checkpoint_index.as_checkpoint(known, builder.knowledge.created_wall, _VERDICTS[verdict])
        builder.fact(CheckpointKnown(checkpoint=checkpoint))


def verdict_of(quick: str | None) -> Verdict:
    """The verdict of a finished checkpoint from its quick check; none given = complete."""
    return _VERDICTS.get(quick or "complete", "complete")


def why_not_resumable(state: JudgeState, knowledge: Knowledge, wanted: str | None = None) -> str | None:
    """Why a launch cannot resume as it is meant to, as a sentence; None if it can.

    ``wanted``: the checkpoint that was named; None = the newest one.
    """
    resume_support, preset = knowledge.resume_support, knowledge.preset
    if wanted is not None:
        known = checkpoint_index.find(state.checkpoints, wanted) or KnownCheckpoint(path=wanted, t=state.time.t)
        why = resume_support.objection(known.shape, known.holds)
        if preset.resume == "none":
            why = f'the preset {preset.name} never resumes (resume = "none")'
        return None if why is None else f"{base_name(wanted)}: {why}"
    newest = checkpoint_index.newest_verified(state.checkpoints) if cannot_be_told(knowledge) else None
    if newest is None:
        return None
    why = resume_support.objection(newest.shape, newest.holds)
    return f"{base_name(newest.path)}: {why}; a start would begin anew and write over it"


def cannot_be_told(knowledge: Knowledge) -> bool:
    """Whether the command has no place for a checkpoint's path and the settings leave a new start to a person."""
    if knowledge.resume_support.forms or knowledge.preset.resume == "none":
        return False
    return knowledge.settings.restart.if_not_told == "wait"
