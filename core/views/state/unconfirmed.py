"""What a state claims before it is so: a pause that nobody has confirmed, a given-up run whose trainer lives."""

from ...model.story import RunStory

PAUSE = "not confirmed yet"


def unconfirmed(story: RunStory) -> str:
    """A clause; empty if the state is what it says."""
    attempt = story.attempt
    if story.state == "paused":
        asked = next((a for a in reversed(story.actions) if a.kind == "pause_attempt"), None)
        return PAUSE if asked is not None and asked.done_t is None else ""
    if story.state == "given_up" and attempt is not None and attempt.ended_t is None:
        pid = "" if attempt.pid is None else f" (pid {attempt.pid})"
        return f"but its trainer{pid} was not ended"
    return ""
