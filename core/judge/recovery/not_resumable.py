"""Commands that cannot be told what to resume from: a new attempt of theirs begins anew, whatever was saved.

It writes over the checkpoints of the run, so nobody starts it by accident: not a restart by itself, and not a person
who said "resume". Known false alarm: a trainer that finds its newest checkpoint by itself; ``if_not_told = "go_on"``.
"""

from ..resume import checkpoint_index
from ..resume.checkpoint_index import base_name
from ..step_builder import Draft

ADVICE = (
    "write {resume} into the command where the path of a checkpoint belongs, as in --resume {resume}",
    "`trainwatch resume --fresh` begins anew all the same",
    '[restart] if_not_told = "go_on" starts it by itself: for a trainer that finds its newest checkpoint without help',
)


def objection(draft: Draft, wanted: str | None = None) -> str | None:
    """Why a launch would not do what was meant, a sentence; None where it would. ``wanted``: the one that is named."""
    telling, preset, shelf = draft.knowledge.telling, draft.knowledge.preset, draft.state.shelf
    if wanted is not None:
        known = checkpoint_index.find(shelf, wanted) or checkpoint_index.Known(path=wanted, t=draft.t)
        why = telling.objection(known.shape, known.holds)
        if preset.resume == "none":
            why = f'the preset {preset.name} never resumes (resume = "none")'
        return None if why is None else f"{base_name(wanted)}: {why}"
    if not is_waited_for(draft):
        return None
    newest = checkpoint_index.newest_good(shelf)
    if newest is None:
        return None
    why = telling.objection(newest.shape, newest.holds)
    return f"{base_name(newest.path)}: {why}; a start would begin anew and write over it"


def is_waited_for(draft: Draft) -> bool:
    """Whether a person has to say so before the command is started again over what it saved."""
    knowledge = draft.knowledge
    if knowledge.telling.forms or knowledge.preset.resume == "none":
        return False
    return knowledge.settings.restart.if_not_told == "wait"
