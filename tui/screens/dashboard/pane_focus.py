"""Which pane of the dashboard is looked at, and whether it fills the screen; kept while the screen is open."""

from collections.abc import Mapping

from ...panes.pane import Pane
from ..box import Box

PANES: tuple[str, ...] = ("gpu", "memory", "timeline", "incidents", "checkpoints", "log")
"""In reading order."""
PLACE_OF_PANE: dict[str, str] = {
    "gpu": "gpus", "memory": "host", "timeline": "metrics", "incidents": "incidents", "checkpoints": "checkpoints",
    "log": "log",
}  # fmt: skip
PLACE_OF_MARK: dict[str, str] = {
    "crash": "incidents", "hang": "incidents", "danger": "incidents", "incident": "incidents",
    "checkpoint": "checkpoints", "bad_checkpoint": "checkpoints", "profile": "profiles",
}  # fmt: skip


class PaneFocus:
    """``focused``: name of a pane, None = none. ``whole``: it fills the screen."""

    def __init__(self) -> None:
        self.focused: str | None = None
        self.whole = False


def next_pane(memory: PaneFocus, panes: Mapping[str, Pane], step: int) -> str:
    """The pane after (or before) the focused one: of those on the screen, or of all panes if one is zoomed."""
    offered = [name for name in PANES if memory.whole or panes[name].display]
    if memory.focused not in offered:
        return offered[0 if step > 0 else -1]
    return offered[(offered.index(memory.focused) + step) % len(offered)]


def zoomed(boxes: Mapping[str, Box], name: str, width: int, height: int) -> dict[str, Box]:
    """Head, one pane over all the rest, footer."""
    head = boxes["head"]
    kept = {"head": head, "keys": boxes["keys"]}
    room = height - head[3] - 1
    return kept | ({name: (0, head[3], width, room)} if room >= 3 else {})
