"""What the dashboard remembers: the pane that is looked at, and what the next start begins with."""

import contextlib
from collections.abc import Mapping
from pathlib import Path

import msgspec

from ..core.store.home import make_private, write_atomically
from .panes.pane import Pane
from .places import PLACES
from .ui.recent import WHOLE

# Where a pane lies on its screen.

Box = tuple[int, int, int, int]
"""(x, y, width, height) in cells."""


# Which pane of the dashboard is looked at, and whether it fills the screen; kept while the screen is open.

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


# What the screen saves for its next start: theme, focused pane, zoom, and the open screen.
#
# A small file in the state folder. Read and write errors are ignored: it is only a convenience.

FILE_NAME = "screen.json"


class Remembered(msgspec.Struct, frozen=True, kw_only=True):
    """``place``: the screen of ``run`` that was open; empty = the dashboard."""

    theme: str = ""
    pane: str | None = None
    whole: bool = False
    zoom: int | None = None
    run: str = ""
    place: str = ""


def recall(home: Path | None) -> Remembered:
    """The saved state; defaults for what is missing or invalid."""
    if home is None:
        return Remembered()
    try:
        found = msgspec.json.decode((home / FILE_NAME).read_bytes(), type=Remembered)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return Remembered()
    return msgspec.structs.replace(
        found,
        pane=found.pane if found.pane in PANES else None,
        whole=found.whole and found.pane in PANES,
        zoom=found.zoom if found.zoom in range(WHOLE + 1) else None,
        place=found.place if found.place in {p.name for p in PLACES} - {"dashboard", "runs"} else "",
    )


def keep(home: Path | None, remembered: Remembered) -> None:
    """Save it; errors are ignored."""
    if home is None:
        return
    with contextlib.suppress(OSError):
        write_atomically(make_private(home) / FILE_NAME, msgspec.json.encode(remembered))
