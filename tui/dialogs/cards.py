"""Dialogs with a card: incidents, absence, information."""

from collections.abc import Callable, Sequence
from functools import partial

from textual import events
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from ...core.model.story import Need, NeedKind, Summary
from ..keys import KEYS, Key, KeyContext, key_words
from ..places import PLACES
from ..ui.cells import glyphs_for, wrap_words
from .dialog import Dialog, hanging

# What needs somebody who comes back, and what happened.

NEED_KEYS: dict[NeedKind, str] = {
    "given_up": "r", "ended_early": "r", "held": "r", "question": "Y", "paused": "r", "unwatched": "S", "nan": "r",
    "incident": "e", "checkpoints": "4", "unclear": "4",
}  # fmt: skip
"""The key of the dashboard that does it."""
ACTING = frozenset("rYS")


class Card(Dialog[None]):
    """What happened, over the dimmed screen, and below it what can be done, which stays in sight while that scrolls.

    Digits choose what is offered; other keys only scroll or close.
    """

    offers: tuple[tuple[str, Callable[[], object]], ...] = ()
    """What can be done, in words, and what does it."""
    heading, offers_first = "What you can do", False

    def told(self, width: int) -> Sequence[Content | str]:
        """The lines above what is offered."""
        raise NotImplementedError

    def below(self) -> ComposeResult:
        if not self.offers_first:
            yield VerticalScroll(Static(id="offers", markup=False), id="choices", can_focus=False)

    def _show_body(self) -> None:
        super()._show_body()
        for static in self.query("#offers").results(Static):
            static.update(Content("\n").join([Content(""), *self._offered(self._room)]) if self.offers else "")

    def text_at(self, width: int) -> Content:
        told = [Content(line) if isinstance(line, str) else line for line in self.told(width)]
        lines = [*self._offered(width), Content("")] if self.offers_first and self.offers else []
        return Content("\n").join([*lines, *told])

    def _offered(self, width: int) -> list[Content]:
        lines = [Content.styled(self.heading, "bold")]
        for number, (text, _) in enumerate(self.offers[:9], 1):
            first, *more = wrap_words(text, width - 6)
            lines.append(Content.assemble("  ", (f"[{number}]", "bold"), f" {first}"))
            lines += [Content(f"      {part}") for part in more]
        if left := len(self.offers[9:]):
            text = f"and {left} more: page 3 lists the incidents, page 4 the checkpoints"
            lines += [Content(f"      {part}") for part in wrap_words(text, width - 6)]
        return lines

    def on_key(self, event: events.Key) -> None:
        at = "123456789".find(event.character or " ")
        if 0 <= at < len(self.offers):
            event.stop()
            self.dismiss(None)
            self.app.call_later(self.offers[at][1])


class AwayDialog(Card):
    """What needs somebody who comes back, each with its digit, and what happened."""

    heading, offers_first = "What needs you", True

    def __init__(self, said: Summary, explain: Callable[[int], object], *, read_only: bool) -> None:
        """``explain``: opens the card of an incident."""
        super().__init__("", "", "")
        self._explain, self._read_only = explain, read_only
        self.tell(said)

    def tell(self, said: Summary) -> None:
        """Show this one: the run went on while the card was open."""
        keys = [(need, NEED_KEYS.get(need.kind, "")) for need in said.needs]
        offered = [(need, key) for need, key in keys if key and not (self._read_only and key in ACTING)]
        self._title, self._hint = said.title, "[1-9] choose   [Esc] close" if offered else "[Esc] close"
        self.set_class(any(need.urgent for need in said.needs), "-danger")
        self.said, self._rest = said, [need.text for need, key in keys if (need, key) not in offered]
        self.offers = tuple((need.text, self._doing(need, key, self._explain)) for need, key in offered)
        for box in self.query("#box"):
            self._label(box)
            self._show_body()

    def _doing(self, need: Need, key: str, explain: Callable[[int], object]) -> Callable[[], object]:
        if need.kind == "incident" and need.incident is not None:
            return partial(explain, need.incident)
        return lambda: self.app.simulate_key(key)

    def told(self, width: int) -> Sequence[Content | str]:
        none = () if self.said.needs else (Content.styled("Nothing needs you.", "bold"), "")
        rest = (hanging(f" - {text}", width) for text in self._rest)
        return (*none, *rest, *(hanging(f" {row}", width) for row in self.said.lines))


# The dialog of help.

BODY = 68
"""Cells in which the keys are written on a large terminal."""
KEY_CELLS = 8
"""Of a key and the blanks behind it, at least."""
LEVELS = {"underused": "low (could do more)"}
"""Levels whose word is another one than their name."""
EVERYWHERE = {
    "ctrl+p": "every action by name: of this screen, of the run, and all screens",
    "ctrl+y": "copy the text of this screen",
    "ctrl+s": "save this screen as SVG",
    "ctrl+z": "back to the shell; fg brings the screen back, the run goes on",
}
NOT_NOW = "Not now"
MARKS = {
    "checkpoint": "verified checkpoint", "doubtful_checkpoint": "doubtful", "bad_checkpoint": "damaged",
    "crash": "crash, danger", "hang": "hang", "incident": "warning", "restart": "restart", "profile": "profile change",
}  # fmt: skip


class HelpDialog(Dialog[None]):
    """All keys with their help, those that apply now first."""

    def __init__(self, context: KeyContext, keys: Sequence[Key] = KEYS) -> None:
        super().__init__("Keys", "", "[Esc] close")
        self.key_context, self.table = context, keys

    def text_at(self, width: int) -> Content:
        return help_text(self.key_context, self.table, min(BODY, width))


def help_text(context: KeyContext, keys: Sequence[Key], width: int) -> Content:
    """Lines of at most ``width`` cells."""
    offered = [key for key in keys if not (key.acts and context.read_only)]
    now = [key for key in offered if key.when(context)]
    other = [key for key in offered if not key.when(context)]
    margin = max(KEY_CELLS, *(len(key_words(key.shown)) + 2 for key in offered))
    lines = [line for key in now for line in _key(key.shown, key.help, width, margin)]
    if keys is not KEYS:
        places = "  ".join(f"{p.key}\u00a0{p.name}" for p in PLACES)
        lines += [Content(""), *(Content(row) for row in wrap_words(places, width))]
    lines += [Content(""), *(line for shown, text in EVERYWHERE.items() for line in _key(shown, text, width, margin))]
    if other:
        lines += [Content(""), Content.styled(NOT_NOW, "bold")]
        lines += [line.stylize("dim") for key in other for line in _key(key.shown, key.help, width, margin)]
    return Content("\n").join([*lines, Content(""), *legend(width)])


def _key(shown: str, text: str, width: int, margin: int) -> list[Content]:
    """``margin``: cells before the text of all keys."""
    first, *more = wrap_words(text, width - margin)
    head = Content.assemble((f"{key_words(shown):>{margin - 2}}  ", "bold"), first)
    return [head, *(Content(f"{'':{margin}}{row}") for row in more)]


def legend(width: int = BODY) -> list[Content]:
    """The meaning of the symbols, as this terminal draws them, in rows of ``width`` cells."""
    glyphs = glyphs_for()
    levels = [f"{glyph} {LEVELS.get(name, name)}" for name, glyph in glyphs.levels.items()]
    marks = [f"{glyphs.marks[name]} {word}" for name, word in MARKS.items()]
    marks += [
        f"{glyphs.expected} expected",
        f"{glyphs.now} now",
        f"{glyphs.done} done",
        f"{2 * glyphs.hatch} not training",
    ]
    texts = ("   ".join(_whole(each) for each in levels), "  ".join(_whole(each) for each in marks))
    return [Content(row) for text in texts for row in wrap_words(text, width)]


def _whole(text: str) -> str:
    """With spaces at which no row ends."""
    return text.replace(" ", "\u00a0")
