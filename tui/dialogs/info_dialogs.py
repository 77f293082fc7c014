"""The dialog of help."""

from collections.abc import Sequence

from textual.content import Content

from ..keys import KEYS, Key, KeyContext
from ..places import PLACES
from ..ui.cells import wrap_words
from ..ui.glyphs import glyphs_for
from .dialog import Dialog

BODY = 68
"""Cells of a dialog's body on 80 columns."""
AROUND = 8
"""Border, margins and scroll bar of a dialog."""
LEVELS = {
    "safe": "safe",
    "warning": "warning",
    "danger": "danger",
    "underused": "low (could do more)",
    "unknown": "unknown",
}
EVERYWHERE = (
    "ctrl+p  every action by name: of this screen, of the run, and all screens",
    "ctrl+y  copy the text of this screen      ctrl+s  save it as SVG",
    "ctrl+z  back to the shell; fg brings the screen back, the run goes on",
)
MARKS = {
    "checkpoint": "verified checkpoint", "bad_checkpoint": "damaged", "crash": "crash", "hang": "hang",
    "incident": "other incident", "restart": "restart", "profile": "profile change",
}  # fmt: skip


def help_dialog(context: KeyContext, keys: Sequence[Key] = KEYS, columns: int = 80) -> Dialog[None]:
    """All keys with their help; those that do not apply now are dim. ``columns``: of the terminal."""
    lines: list[Content] = []
    body = max(24, min(BODY, columns - AROUND))
    for key in keys:
        if key.acts and context.read_only:
            continue
        style = "" if key.when(context) else "dim"
        first, *more = wrap_words(key.help, body - 8)
        lines.append(Content.assemble((f"{key.shown:>6}  ", "bold" if not style else "dim"), (first, style)))
        lines += [Content.assemble((f"{'':8}{row}", style)) for row in more]
    if keys is not KEYS:
        places = "  ".join(f"{p.key}\u00a0{p.name}" for p in PLACES)
        lines += [Content(""), *(Content(row) for row in wrap_words(places, body))]
    everywhere = (row for line in EVERYWHERE for row in wrap_words(line, body))
    lines += [Content(""), *(Content(row) for row in everywhere), Content(""), *legend(body)]
    return Dialog("Keys", Content("\n").join(lines), "[Esc] close")


def legend(width: int = BODY) -> list[Content]:
    """The meaning of the symbols, as this terminal draws them, in rows of ``width`` cells."""
    glyphs = glyphs_for()
    levels = [f"{glyphs.levels[name]} {word}" for name, word in LEVELS.items()]
    marks = [f"{glyphs.marks[name]} {word}" for name, word in MARKS.items()]
    marks += [f"{glyphs.expected} expected", f"{glyphs.now} now", f"{glyphs.done} done"]
    texts = ("   ".join(_whole(each) for each in levels), "  ".join(_whole(each) for each in marks))
    return [Content(row) for text in texts for row in wrap_words(text, width)]


def _whole(text: str) -> str:
    """With spaces at which no row ends."""
    return text.replace(" ", "\u00a0")
