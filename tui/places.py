"""The numbered screens of a run, and the keys that open them from everywhere."""

import os
import signal
import subprocess
from collections.abc import Callable, Sequence

import msgspec
from textual.app import App, SuspendNotSupported

from ..core.model.settings import Screen as ScreenSettings
from ..core.model.story import Situation
from ..core.views.dashboard import HeaderView
from ..core.views.words import STATE_WORDS
from .ui.cells import Glyphs, plain


class Place(msgspec.Struct, frozen=True):
    """``name``: what the application opens, and the word on the tab; ``short``: the word if not all fit."""

    key: str
    name: str
    short: str = ""


PLACES: tuple[Place, ...] = (
    Place("1", "dashboard", "dash"),
    Place("2", "log"),
    Place("3", "incidents", "incid"),
    Place("4", "checkpoints", "ckpts"),
    Place("5", "profiles", "prof"),
    Place("6", "runs"),
    Place("7", "metrics"),
    Place("8", "gpus"),
    Place("9", "host"),
)
SIDE_PLACES: tuple[str, ...] = ("samples", "ranks", "launch")
"""Screens without a number: they are opened over another one, and Escape returns to it."""


# Suspends the screen while another program uses the terminal.


def use_terminal(app: App[object], work: Callable[[], None], unable: str = "This terminal cannot be suspended") -> str:
    """Do ``work``, which has the terminal until it ends. Returns a sentence if it could not be done, else nothing.

    ``work`` may raise RuntimeError with one; ``unable``: that of a screen in a browser.
    """
    # Ctrl-C in that program reaches our whole process group: it must end that program only.
    # A handler, not SIG_IGN, because an ignored signal would be inherited by the program.
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        with app.suspend():
            work()
    except SuspendNotSupported:
        return unable
    except RuntimeError as error:
        return str(error)
    finally:
        signal.signal(signal.SIGINT, before)
    return ""


def run_in_terminal(app: App[object], argv: Sequence[str], back: str = "Back. The training was not touched.") -> str:
    """Run ``argv`` in the foreground until it ends. Returns a sentence on how it ended; ``back``: if it ended well."""
    from ..core.bound_process import bound  # loads ctypes, which nothing else on the screen needs

    def run() -> None:
        try:
            code = subprocess.call(bound(argv, at_end=signal.SIGHUP))
        except OSError as error:
            raise RuntimeError(f"{argv[0]}: {error.strerror}") from error
        if code:
            raise RuntimeError(f"{argv[0]} ended with {code}")

    return use_terminal(app, run) or back


# The terminal's title shows the state of the run, and its bell rings at a new incident.

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
        title = title_of(now, view, self._glyphs)
        if self._has_title and title != self._title:
            self._write(f"{'' if self._title else KEEP}\x1b]2;{plain(title)}\x07")
            self._title = title

    def restore(self) -> None:
        """Restore the title that the terminal had."""
        if self._title:
            self._write(GIVE_BACK)
            self._title = ""


def title_of(now: Situation, view: HeaderView, glyphs: Glyphs) -> str:
    """``● luca · running 71 %``: only what changes seldom, so that the title is rarely written."""
    sign = glyphs.levels[view.verdict.level]
    state = STATE_WORDS[now.story.state]
    done = "" if view.done is None or now.story.state == "finished" else f" {100 * view.done:.0f} %"
    return f"{sign} {view.name or 'trainwatch'} · {state}{done}"
