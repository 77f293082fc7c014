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


def help_dialog(context: KeyContext, keys: Sequence[Key] = KEYS) -> Dialog[None]:
    """All keys with their help; those that do not apply now are dim."""
    lines: list[Content] = []
    for key in keys:
        if key.acts and context.read_only:
            continue
        style = "" if key.when(context) else "dim"
        lines.append(Content.assemble((f"{key.shown:>6}  ", "bold" if not style else "dim"), (key.help, style)))
    if keys is not KEYS:
        places = "  ".join(f"{p.key} {p.name}" for p in PLACES)
        lines += [Content(""), Content(places)]
    lines += [Content(""), *(Content(line) for line in EVERYWHERE), Content(""), *legend()]
    return Dialog("Keys", Content("\n").join(lines), "[Esc] close")


def legend() -> list[Content]:
    """The meaning of the symbols, as this terminal draws them."""
    glyphs = glyphs_for()
    levels = "   ".join(f"{glyphs.levels[name]} {word}" for name, word in LEVELS.items())
    marks = [f"{glyphs.marks[name]} {word}" for name, word in MARKS.items()]
    marks += [f"{glyphs.expected} expected", f"{glyphs.now} now", f"{glyphs.done} done"]
    return [Content(row) for row in (levels, *wrap_words("  ".join(m.replace(" ", "\u00a0") for m in marks), BODY))]
