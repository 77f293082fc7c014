"""What is known of a run without a supervisor."""

from ...model.story import RunStory
from ...store.run_directory import RunDirectory


def current_story(run: RunDirectory, story: RunStory) -> RunStory:
    """The story, with the state "interrupted" if neither supervisor nor trainer exist."""
    from ..runs.unwatched import as_found  # loads the launching part of core: only if no supervisor runs

    return as_found(run, story)
