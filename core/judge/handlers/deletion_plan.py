"""Which older checkpoints are deleted if ``[checkpoints] keep_last`` is set.

After each new complete checkpoint a plan is made (act reads the files). Each deletion that it proposes is a decision of
its own, so that it is in the journal before it happens. Each proposal is checked again against what is known of the
run: only checkpoints that this run wrote are deleted, and never one that a restart could need. One whose time
cannot be right is kept: a person may have copied it in.
"""

from typing import Any

import msgspec

from ...model.checkpoints.checkpoint import Checkpoint
from ...model.decision import DeleteCheckpoint, PlanRetention
from ...model.fact import ActionWithheld
from ...model.observation import Outcome
from ..evaluation import evaluations
from ..recovery.operator import gate
from ..resume import checkpoint_index, known_checkpoint, resume_point
from ..run_machine import is_watched
from ..step_builder import StepBuilder

replace = msgspec.structs.replace


def on_saved(builder: StepBuilder) -> None:
    """Ask for a plan after a new complete checkpoint, if there are more than are to be kept."""
    settings = builder.knowledge.settings.checkpoints
    if settings.keep_last <= 0 or builder.state.planned_deletion is not None or _in_doubt(builder):
        return
    own = [k for k in builder.state.checkpoints.known if _is_deletable(k) and k.complete and k.bad is None]
    if len(own) <= settings.keep_last:
        return
    order = builder.decide(
        PlanRetention,
        f"{len(own)} checkpoints of this run, {settings.keep_last} are to be kept: plan which to delete",
        keep=settings.keep_last,
        deep=settings.verify == "deep",
    )
    builder.set(planned_deletion=order)


def on_planned(builder: StepBuilder, outcome: Outcome) -> None:
    """Delete what the plan proposes, if nothing prevents it."""
    builder.set(planned_deletion=None)
    if not outcome.ok:
        builder.note(f"no checkpoint was deleted: {outcome.detail or 'no reason given'}")
        return
    if _in_doubt(builder) or not is_watched(builder.state.machine):
        return
    for found in _proposed(outcome.data):
        why_not = _objection(builder, found)
        if why_not is None and gate.is_closed(builder):
            _withhold(builder, found)
        elif why_not is None:
            builder.decide(
                DeleteCheckpoint,
                f"delete {found.name}: {builder.knowledge.settings.checkpoints.keep_last} newer verified ones are kept",
                checkpoint=found,
            )


def _withhold(builder: StepBuilder, found: Checkpoint) -> None:
    """Record once that it would be deleted."""
    told = builder.state.kept
    if found.path in told:
        return
    there = {known.path for known in builder.state.checkpoints.known}
    builder.set(kept=(*(path for path in told if path in there), found.path))
    keep = builder.knowledge.settings.checkpoints.keep_last
    gate.tell(
        builder,
        ActionWithheld(
            action="delete",
            ask=f"delete {found.name}",
            would=f"deleted {found.name}",
            why=f"{keep} newer verified ones are kept",
            checkpoint=found.path,
        ),
    )


def _in_doubt(builder: StepBuilder) -> bool:
    """Return whether something may be wrong with the training: an older checkpoint may be needed then."""
    return builder.state.attempt.nan_t is not None or any(
        incident.kind in {"loss", "crash", "hang", "resume", "checkpoint"} for incident in builder.state.incidents
    )


def _proposed(data: dict[str, Any]) -> tuple[Checkpoint, ...]:
    try:
        return msgspec.convert(data.get("delete", ()), tuple[Checkpoint, ...])
    except msgspec.ValidationError:
        return ()


def _is_deletable(known: known_checkpoint.KnownCheckpoint) -> bool:
    return known.own and known.unclear is None and known.changed is None and known.written is None


def _objection(builder: StepBuilder, found: Checkpoint) -> str | None:
    state = builder.state
    known = checkpoint_index.find(state.checkpoints, found.path)
    if known is None or not _is_deletable(known):
        return "another run may have written it"
    if not known.complete or known.bad is not None:
        return "it is not verified"
    if found.path == state.attempt.resume_from:
        return "this attempt resumed from it"
    newest = resume_point.newest_verified(state.checkpoints, builder.knowledge.resume_support)
    if newest is not None and newest.path == found.path:
        return "it is the resume point"
    running = state.evaluations.running
    if running is not None and running.path == found.path:
        return "it is being evaluated"
    if evaluations.is_best(state.evaluations, state.checkpoints.known, found.path):
        return "it has the best score"
    return None
