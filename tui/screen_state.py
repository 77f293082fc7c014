"""What the screen remembers from one time to the next: colours, the pane that is looked at, zoom, and the place.

A small file in the state folder. It is a convenience: what cannot be read or written is forgotten, and said to nobody.
"""

import contextlib
from pathlib import Path

import msgspec

from ..core.store.atomic import write_atomically
from ..core.store.home import make_private
from .places import PLACES
from .screens.pane_focus import PANES
from .ui.time_window import WHOLE

FILE_NAME = "screen.json"


class Remembered(msgspec.Struct, frozen=True, kw_only=True):
    """``place``: where one was when one left ``run``; empty = the dashboard."""

    theme: str = ""
    pane: str | None = None
    whole: bool = False
    zoom: int | None = None
    run: str = ""
    place: str = ""


def recall(home: Path | None) -> Remembered:
    """As it was left; the usual where nothing (sensible) is remembered."""
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
    """Write it down, if that can be done."""
    if home is None:
        return
    with contextlib.suppress(OSError):
        write_atomically(make_private(home) / FILE_NAME, msgspec.json.encode(remembered))
