"""Dialogs that only tell: help, and everything about one incident."""

from textual.content import Content

from ...core.views.incidents import IncidentView
from ..keys import KEYS, KeyContext
from .dialog import Dialog

LEGEND = "◆ good checkpoint  ◈ damaged  ◇ expected  ✖ crash  ◼ hang  ▲ other incident\n↻ restart  ⇄ profile change  ┃ now  ⚑ done"
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
    parts += [(name, getattr(view, name)) for name in ("seen", "cause", "did", "cost") if getattr(view, name)]
    lines = [Content.assemble((f"{name:<7}", "dim"), text) for name, text in parts]
    if view.evidence:
        lines += [Content(""), Content.styled("evidence", "dim")]
        lines += [Content(f"  {what}") for what in view.evidence]
    return Dialog(
        f"{view.at}  {view.kind}: {view.title}",
        Content("\n").join(lines),
        "[Esc] close",
        danger=view.open and view.level == "danger",
    )
