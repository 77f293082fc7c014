"""Dialogs with a card: incidents, absence, information."""

from collections.abc import Sequence

from textual import events
from textual.content import Content

from ...core.model.story import NeedKind, Summary
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
OWN_KEYS = frozenset(
    {"escape", "q", "down", "up", "j", "k", "pagedown", "pageup", "ctrl+p", "ctrl+z", "ctrl+s", "ctrl+c"}
)


class AwayDialog(Dialog[None]):
    """Any key but those that scroll and close does what it does on the screen below."""

    def __init__(self, said: Summary, *, read_only: bool) -> None:
        super().__init__(said.title, "", "[Esc] close", danger=any(need.urgent for need in said.needs))
        self.said, self._offered = said, frozenset(NEED_KEYS.values()) - (ACTING if read_only else frozenset())

    def text_at(self, width: int) -> Content:
        lines = [Content.styled("What needs you" if self.said.needs else "Nothing needs you.", "bold")]
        for need in self.said.needs:
            key = NEED_KEYS.get(need.kind, "")
            sign = f"[{key}]" if key in self._offered else " - "
            first, *more = wrap_words(need.text, width - 6)
            lines.append(Content.assemble("  ", (sign, "bold"), f" {first}"))
            lines += [Content(f"      {part}") for part in more]
        return Content("\n").join(
            [*lines, Content(""), *(Content(hanging(f" {row}", width)) for row in self.said.lines)]
        )

    def on_key(self, event: events.Key) -> None:
        if event.key not in OWN_KEYS:
            event.stop()
            self.dismiss(None)
            self.app.call_later(self.app.simulate_key, event.key)


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
    "checkpoint": "verified checkpoint", "bad_checkpoint": "damaged", "crash": "crash", "hang": "hang",
    "incident": "other incident", "restart": "restart", "profile": "profile change",
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
