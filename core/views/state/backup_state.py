"""The copies of checkpoints as status shows them: the newest, and whether it was made."""

from typing import Any

from ...model.story import RunStory

BACK_UP = "back_up"
"""The decision's tag in the journal."""


def backup_state(story: RunStory) -> dict[str, Any] | None:
    """``state``: copying, copied or failed; ``detail``: where to, or why not; ``t``: run seconds. None: no copy yet."""
    newest = next((action for action in reversed(story.actions) if action.kind == BACK_UP), None)
    if newest is None:
        return None
    state = "copying" if newest.ok is None else "copied" if newest.ok else "failed"
    return {"state": state, "what": newest.reason, "detail": newest.detail, "t": newest.done_t or newest.t}


def backup_line(found: dict[str, Any] | None) -> str | None:
    """One line for people; None if there is no copy."""
    if found is None:
        return None
    if found["state"] == "copying":
        return f"backup: {found['what']} …"
    return f"backup {'FAILED' if found['state'] == 'failed' else 'done'}: {found['detail']}"
