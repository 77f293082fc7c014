"""Dialogs that only tell: help, and everything about one incident."""

from textual.content import Content

from ...core.views.incidents import IncidentView
from ..cells import wrap_words
from ..keys import KEYS, KeyContext
from .dialog import Dialog

LEGEND = """\
◆ good checkpoint  ◈ damaged  ◇ expected  ✖ crash  ◼ hang  ▲ other incident
↻ restart  ⇄ profile change  ┃ now  ⚑ done"""
BODY = 68
"""Cells of a dialog's body on 80 columns."""
LEVELS = "● safe   ▲ warning   ✖ danger   ○ low (could do more)   – unknown"


def help_dialog(context: KeyContext) -> Dialog[None]:
    """Every key with what it does; those that do not apply now are dim."""
    lines: list[Content] = []
    for key in KEYS:
        if key.acts and context.read_only:
            continue
        style = "" if key.when(context) else "dim"
        lines.append(Content.assemble((f"{key.shown:>6}  ", "bold" if not style else "dim"), (key.help, style)))
    lines += [Content(""), Content("ctrl+p  every action by name"), Content(""), Content(LEVELS), Content(LEGEND)]
    return Dialog("Keys", Content("\n").join(lines), "[Esc] close")


def incident_dialog(view: IncidentView) -> Dialog[None]:
    """What was seen, why, what was done, what it cost, the evidence."""
    parts: list[tuple[str, str]] = [("state", view.status)]
    if ":" in view.ending:
        parts.append(("end", view.ending))
    parts += [(name, getattr(view, name)) for name in ("seen", "cause", "did", "cost") if getattr(view, name)]
    lines = []
    for name, text in parts:
        for number, row in enumerate(wrap_words(text, BODY - 7)):
            lines.append(Content.assemble((f"{name if number == 0 else '':<7}", "dim"), row))
    if view.evidence:
        lines += [Content(""), Content.styled("evidence", "dim")]
        for what in view.evidence:
            first, *more = wrap_words(what, BODY - 4)
            lines += [Content(f"  - {first}"), *(Content(f"    {row}") for row in more)]
    return Dialog(
        f"{view.at}  {view.kind}: {view.title}",
        Content("\n").join(lines),
        "[Esc] close",
        danger=view.open and view.level == "danger",
    )
