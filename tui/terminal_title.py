"""The terminal's title shows the state of the run, and its bell rings at a new incident."""

import os
from collections.abc import Callable

from ..core.model.settings import Screen as ScreenSettings
from ..core.model.situation import Situation
from ..core.views.panes.header import HeaderView
from ..core.views.words import STATE_WORDS
from .ui.cells import plain
from .ui.glyphs import Glyphs

WITHOUT_TITLE: frozenset[str] = frozenset({"linux", "dumb", "vt100", "vt220", ""})
"""Values of TERM whose terminals have no title; the Linux console takes the sequence for a change of colours."""
KEEP, GIVE_BACK = "\x1b[22;2t", "\x1b[23;2t"
"""Push and pop the title on the terminal's stack; terminals without one ignore both."""


class TerminalTitle:
    """``write``: to the terminal; ``ring``: its bell. Incidents of the first poll do not ring."""

    def __init__(
        self, settings: ScreenSettings, write: Callable[[str], None], ring: Callable[[], None], glyphs: Glyphs
    ) -> None:
        self._settings, self._write, self._ring, self._glyphs = settings, write, ring, glyphs
        self._known: frozenset[int] | None = None
        self._title = ""
        self._has_title = settings.title and os.environ.get("TERM", "") not in WITHOUT_TITLE

    def update(self, now: Situation, view: HeaderView) -> None:
        """Update the title, and ring if an incident was opened since the last call."""
        opened = frozenset(i.id for i in now.story.incidents if i.severity != "info")
        if self._known is not None and opened - self._known and self._settings.bell:
            self._ring()
        if now.story.seq:
            self._known = opened
        if self._has_title:
            self._set(title_of(now, view, self._glyphs))

    def restore(self) -> None:
        """Restore the title that the terminal had."""
        if self._title:
            self._write(GIVE_BACK)
            self._title = ""

    def _set(self, title: str) -> None:
        if title != self._title:
            before = "" if self._title else KEEP
            self._title = title
            self._write(f"{before}\x1b]2;{plain(title)}\x07")


def title_of(now: Situation, view: HeaderView, glyphs: Glyphs) -> str:
    """``● luca · running 71 %``: only what changes seldom, so that the title is rarely written."""
    sign = glyphs.levels[view.verdict.level]
    state = STATE_WORDS[now.story.state]
    done = "" if view.done is None or now.story.state == "finished" else f" {100 * view.done:.0f} %"
    return f"{sign} {view.name or 'trainwatch'} · {state}{done}"
