"""What was not done by itself, and what waits for an answer, as text."""

from collections.abc import Iterator

from ..model.situation import Situation
from ..model.story import RunStory, WithheldAction
from . import quantity


def would_have(held: WithheldAction, wall0: float, now_wall: float | None = None) -> str:
    """``would have restarted at 03:41 from checkpoint-4000 (step 4000), after ending it``."""
    action = held.action
    at = f"at {quantity.clock(wall0 + held.t, now_wall)}"
    place = " ".join(filter(None, ("would have", action.would, at, action.where)))
    return f"{place}, {action.how}" if action.how else place


def commands(story: RunStory) -> Iterator[tuple[str, str]]:
    """What can be done about what waits, and the command for it."""
    if story.question is None:
        return
    name = story.run.run if story.run else "RUN"
    for answer in story.question.action.answers:
        what, _, command = answer.partition(": ")
        yield what, command.format(run=name)


def question_clause(now: Situation) -> str | None:
    """The question of the screen, with its keys; None if nothing waits."""
    held = now.story.question
    if held is None:
        return None
    if held.action.asks:
        text = held.action.question
        return f"{text[:1].upper()}{text[1:]} [Y] yes [c] no"
    text = would_have(held, now.story.wall0, now.now_wall)
    return f"{text[:1].upper()}{text[1:]}: [Y] do it"
