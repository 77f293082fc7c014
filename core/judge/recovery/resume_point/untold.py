"""A command that has no place for the path of a checkpoint: a start would begin anew and write over what was saved."""

from ....model.launch.ways_on import ways_on
from ...knowledge import Knowledge
from ...resume import resume_point
from ...state import JudgeState


def cannot_be_told(knowledge: Knowledge) -> bool:
    """Whether the command has no place for a checkpoint's path and the settings leave a new start to a person."""
    if knowledge.resume_support.forms or knowledge.preset.resume == "none":
        return False
    return knowledge.settings.restart.if_not_told == "wait"


def starts_again(state: JudgeState, knowledge: Knowledge) -> str:
    """The commands that start a run that is over, as a clause."""
    if cannot_be_told(knowledge) and resume_point.newest_verified(state.checkpoints) is not None:
        return f"to start it again: {ways(knowledge)}"
    return f"`{knowledge.typed('resume')}` starts again"


def ways(knowledge: Knowledge) -> str:
    """The commands that go on with such a run, as a clause."""
    return ways_on((knowledge.run_id,) if knowledge.run_id else ())
