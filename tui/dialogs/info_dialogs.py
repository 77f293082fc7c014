"""The dialog of help."""

from collections.abc import Sequence

from textual.content import Content

from ..keys import KEYS, Key, KeyContext, key_words
from ..places import PLACES
from ..ui.cells import wrap_words
from ..ui.glyphs import glyphs_for
from .dialog import Dialog

BODY = 68
"""Cells in which the keys are written on a large terminal."""
KEY_CELLS = 8
"""Of a key and the blanks behind it, at least."""
LEVELS = {
    "safe": "safe",
    "warning": "warning",
    "danger": "danger",
    "underused": "low (could do more)",
    "unknown": "unknown",
}
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
    levels = [f"{glyphs.levels[name]} {word}" for name, word in LEVELS.items()]
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
