"""What a person can do about a run that is over and whose command has no place for the path of a checkpoint.

``resume`` alone is refused then, because a start would train from the beginning and write over what was saved.
"""

from ..story import RunStory
from ..text.suggestion import typed


def ways_on(run: tuple[str, ...]) -> str:
    """The commands that go on with such a run, as a clause. ``run``: its id."""
    return (
        f"`{typed('resume', *run)}` once the training script has an option that takes the path of a checkpoint, "
        f"`{typed('resume', *run, '--', 'NEW', 'COMMAND')}` with a command that has one, or "
        f"`{typed('resume', *run, '--fresh')}` from the beginning, over what was saved"
    )


def lacks_place(story: RunStory) -> bool:
    """Whether the run has saved something that its command cannot be given, as far as is known of both."""
    way = None if story.run is None else story.run.resume
    if way is None or way.will in {"yes", "self"} or way.source in {"preset", "command"}:
        return False
    return any(c.verdict == "complete" and story.origin(c) != "earlier" for c in story.checkpoints)


def how_to_resume(story: RunStory, run: tuple[str, ...]) -> str:
    """The command that goes on with a run that is over; all of them if ``resume`` alone is refused."""
    return ways_on(run) if lacks_place(story) else f"`{typed('resume', *run)}`"
