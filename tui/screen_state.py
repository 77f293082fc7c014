"""What the screen saves for its next start: theme, focused pane, zoom, and the open screen.

A small file in the state folder. Read and write errors are ignored: it is only a convenience.
"""

import contextlib
from pathlib import Path

import msgspec

from ..core.store.atomic import write_atomically
from ..core.store.home import make_private
from .places import PLACES
from .screens.dashboard.pane_focus import PANES
from .ui.time_window import WHOLE

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
