"""Which older checkpoints may go, where the settings say how many are kept (``[checkpoints] keep_last``).

After each new complete checkpoint a plan is asked for (it reads the files); each deletion it proposes is a decision of
its own, so that it is in the journal before it happens. What the plan proposes is judged once more by what is known of
the run: only checkpoints that this run wrote go, never one that a restart could need.
"""

from typing import Any

import msgspec

from ...model.checkpoints.checkpoint import Checkpoint
from ...model.decision import DeleteCheckpoint, PlanRetention
from ...model.observation import Outcome
from ..resume import checkpoint_index
from ..run_machine import is_watched
from ..step_builder import Draft

replace = msgspec.structs.replace


def on_saved(draft: Draft) -> None:
    """A complete checkpoint of this run came."""
    settings = draft.knowledge.settings.checkpoints
    if settings.keep_last <= 0 or draft.state.tidying is not None or _in_doubt(draft):
        return
    own = [k for k in draft.state.shelf.known if k.own and k.complete and k.bad is None]
    if len(own) <= settings.keep_last:
        return
    order = draft.decide(
        PlanRetention,
        f"{len(own)} checkpoints of this run, {settings.keep_last} are to be kept: see which may go",
        keep=settings.keep_last,
        deep=settings.verify == "deep",
    )
    draft.set(tidying=order)


def on_planned(draft: Draft, outcome: Outcome) -> None:
    """The plan is there (or could not be made): delete what may go."""
    draft.set(tidying=None)
    if not outcome.ok:
        draft.note(f"no checkpoint was deleted: {outcome.detail or 'no reason given'}")
        return
    if _in_doubt(draft) or not is_watched(draft.state.machine):
        return
    for found in _proposed(outcome.data):
        why_not = _objection(draft, found)
        if why_not is None:
            draft.decide(
                DeleteCheckpoint,
                f"delete {found.name}: {draft.knowledge.settings.checkpoints.keep_last} newer sound ones are kept",
                checkpoint=found,
            )


def _in_doubt(draft: Draft) -> bool:
    """While something may be wrong with the training, an older checkpoint may be the one to go back to."""
    return draft.state.attempt.nan_t is not None or any(
        incident.kind in {"loss", "crash", "hang", "resume", "checkpoint"} for incident in draft.state.incidents
    )


def _proposed(data: dict[str, Any]) -> tuple[Checkpoint, ...]:
    try:
        return msgspec.convert(data.get("delete", ()), tuple[Checkpoint, ...])
    except msgspec.ValidationError:
        return ()


def _objection(draft: Draft, found: Checkpoint) -> str | None:
    state = draft.state
    known = checkpoint_index.find(state.shelf, found.path)
    if known is None or not known.own:
        return "it is not of this run"
    if not known.complete or known.bad is not None:
        return "it is not sound"
    if found.path == state.attempt.resume_from:
        return "this attempt resumed from it"
    newest = checkpoint_index.newest_good(state.shelf, draft.knowledge.telling)
    if newest is not None and newest.path == found.path:
        return "it is the resume point"
    return None
