"""What the dashboard remembers: the pane that is looked at, and what the next start begins with."""

import contextlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from time import time
from typing import TYPE_CHECKING

import msgspec

from ..core.model.story import Look, Situation, Summary
from ..core.store.home import make_private, write_atomically
from ..core.views.run_summary import AWAY_S, is_due, since_wall, urgent_keys

if TYPE_CHECKING:
    from .dialogs.cards import AwayDialog
    from .screens.dashboard import Dashboard

# Where a pane lies on its screen.

Box = tuple[int, int, int, int]
"""(x, y, width, height) in cells."""
Band = tuple[int, Sequence[tuple["str | Sequence[Band]", int]]]
"""Rows, and panes beside each other with their columns; in place of a pane bands that stand below each other there."""


def stack(box: Box, bands: Iterable[Band]) -> dict[str, Box]:
    """Bands below each other in a box, without those that have no rows or no columns."""
    x, y, _, _ = box
    boxes: dict[str, Box] = {}
    for rows, panes in bands:
        at = x
        for pane, columns in panes:
            place = (at, y, columns, rows)
            if rows > 0 and columns > 0:
                boxes |= {pane: place} if isinstance(pane, str) else stack(place, pane)
            at += columns
        y += rows
    return boxes


# Which pane of the dashboard is looked at, and whether it fills the screen; kept while the screen is open.

PANES: tuple[str, ...] = ("gpu", "memory", "timeline", "incidents", "checkpoints", "log")
"""In reading order."""
PLACE_OF_PANE: dict[str, str] = {
    "gpu": "gpus", "memory": "host", "timeline": "metrics", "incidents": "incidents", "checkpoints": "checkpoints",
    "log": "log",
}  # fmt: skip
PLACE_OF_MARK: dict[str, str] = {
    "crash": "incidents", "hang": "incidents", "danger": "incidents", "incident": "incidents",
    "checkpoint": "checkpoints", "doubtful_checkpoint": "checkpoints", "bad_checkpoint": "checkpoints",
    "profile": "profiles",
}  # fmt: skip


class PaneFocus(msgspec.Struct):
    """``focused``: name of a pane, "" = none. ``whole``: it fills the screen."""

    focused: str = ""
    whole: bool = False


# What the screen saves for its next start, in a small file in the state folder: it is only a convenience.

FILE_NAME = "screen.json"


class Remembered(msgspec.Struct, frozen=True, kw_only=True):
    theme: str = ""


def recall(home: Path | None) -> Remembered:
    """The saved state; defaults for what is missing or invalid."""
    if home is None:
        return Remembered()
    try:
        return msgspec.json.decode((home / FILE_NAME).read_bytes(), type=Remembered)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return Remembered()


def keep(home: Path | None, remembered: Remembered) -> None:
    """Save it; errors are ignored."""
    if home is None:
        return
    with contextlib.suppress(OSError):
        write_atomically(make_private(home) / FILE_NAME, msgspec.json.encode(remembered))


# Greets somebody who comes back to a run, and remembers when a person last looked at it.


KEEP_S = 60.0
"""How often a look is written while keys are pressed."""
AGAIN = "m shows what happened while you were away"


class AwayWatch:
    """Of one dashboard. ``see`` is called with each poll, ``used`` with each key, click and focus."""

    def __init__(self, on: "Dashboard") -> None:
        self._on = on
        self._last: Look | None = None
        self._known = self._decided = self._reading = False
        self._used_at = self._kept_at = time()
        self._keys = 0
        self._card: AwayDialog | None = None
        self._told: object = None
        """State and needs of the run that the card was read for."""

    def begin(self) -> None:
        """Read when a person last looked."""

        def take(last: Look | None, _: str) -> None:
            self._last, self._known = last, True
            if self._on.now.now_wall:
                self.see(self._on.now)

        self._on.tasks.fetch(self._on.run.services.last, take)

    def see(self, now: Situation) -> None:
        """Decide once, when the run is known, whether the card is shown; one that is open follows the run."""
        if self._card is not None and self._card.is_attached and _told(now) != self._told:
            self._read(since_wall(self._last, now), asked=True)
        if not self._known or self._decided or not now.now_wall:
            return
        self._decided = True
        if is_due(self._last, now):
            self._read(since_wall(self._last, now), asked=False)
        self._keep()

    def show(self) -> None:
        self._read(since_wall(self._last, self._on.now), asked=True)

    def used(self, *, pressed: bool) -> None:
        """A person is at the screen; ``pressed``: a key or a button, not only the focus."""
        self._keys += pressed
        away_s, self._used_at = time() - self._used_at, time()
        if not self._decided:
            return
        now = self._on.now
        if away_s > AWAY_S:
            self._last = Look(wall=now.now_wall - away_s)
            self._on.show_message(AGAIN)
        if away_s > AWAY_S or time() - self._kept_at > KEEP_S:
            self._keep()

    def leave(self) -> None:
        """The screen is left: it was looked at until now."""
        if self._decided:
            self._on.run.services.keep(self._look())

    def _look(self) -> Look:
        return Look(wall=self._on.now.now_wall, needs=urgent_keys(self._on.now))

    def _keep(self) -> None:
        services, look, self._kept_at = self._on.run.services, self._look(), time()
        self._on.tasks.fetch(lambda: services.keep(look), lambda _, __: None)

    def _read(self, since: float | None, *, asked: bool) -> None:
        if self._reading:
            return
        self._reading, self._told = True, _told(self._on.now)

        def show(said: Summary | None, trouble: str) -> None:
            self._reading = False
            if said is None:
                self._on.show_message(f"The summary cannot be read: {trouble}")
            elif asked or not self._keys:
                from .dialogs.cards import AwayDialog  # the first picture does not wait for it

                if self._card is not None and self._card.is_attached:
                    self._card.tell(said)
                    return
                self._card = AwayDialog(said, self._on.explain, read_only=self._on.context.read_only)
                self._on.app.push_screen(self._card)
            else:  # somebody is at work here already
                self._on.show_message(AGAIN)

        self._on.tasks.fetch(lambda: self._on.run.services.summary(since), show)


def _told(now: Situation) -> object:
    return now.story.state, urgent_keys(now)
