"""The dialog to choose the remedies of a resume: keep or undo the applied ones, take proposed ones."""

from collections.abc import Sequence
from typing import ClassVar

import msgspec
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from ...core.views.remedy_words import RemedyRow
from .dialog import Dialog

TICKED, FREE = "[x]", "[ ]"


class RemedyChoice(msgspec.Struct, frozen=True):
    """``take``: names of proposals; ``take_back``: undo all applied ones (the supervisor undoes only all of them)."""

    take: tuple[str, ...] = ()
    take_back: bool = False


AS_IT_IS = RemedyChoice()


class ChooseRemedies(Dialog[RemedyChoice]):
    """A list to tick with space; Enter continues. Applied remedies share a row: they are kept or undone together."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "tick", show=False, priority=True),
        Binding("down,j", "move(1)", show=False),
        Binding("up", "move(-1)", show=False),
    ]

    def __init__(self, rows: Sequence[RemedyRow]) -> None:
        super().__init__(
            "Resume: with what?", "Ticked remedies are used. The settings are below.",
            "[space] tick   [Enter] continue   [Esc] cancel",
        )  # fmt: skip
        self.in_force = tuple(r for r in rows if r.applied)
        self.waiting = tuple(r for r in rows if not r.applied)
        self.ticked: set[str] = {"in force"} if self.in_force else set()
        self.keys = [*(["in force"] if self.in_force else []), *(r.name for r in self.waiting)]

    def more(self) -> ComposeResult:
        """The list, and what the row under the cursor is."""
        options = OptionList(*(Option(self._text(key), id=key) for key in self.keys), markup=False)
        options.highlighted = 0
        yield options
        yield Static("", id="difference", markup=False)

    def on_mount(self) -> None:
        self.query_one(OptionList).focus()

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        """Show the details of the row."""
        self.query_one("#difference", Static).update("\n" + "\n".join(self._told(self.keys[event.option_index])))

    def on_option_list_option_selected(self, _: OptionList.OptionSelected) -> None:
        taken = tuple(r.name for r in self.waiting if r.name in self.ticked)
        self.dismiss(RemedyChoice(take=taken, take_back=bool(self.in_force) and "in force" not in self.ticked))

    def action_tick(self) -> None:
        """Tick or untick the row."""
        options = self.query_one(OptionList)
        if options.highlighted is None:
            return
        key = self.keys[options.highlighted]
        self.ticked ^= {key}
        options.replace_option_prompt(key, self._text(key))

    def action_move(self, rows: int) -> None:
        options = self.query_one(OptionList)
        for _ in range(abs(rows)):
            options.action_cursor_down() if rows > 0 else options.action_cursor_up()

    def _text(self, key: str) -> str:
        sign = TICKED if key in self.ticked else FREE
        if key == "in force":
            return f"{sign} keep what was changed: {'; '.join(r.title for r in self.in_force)}"
        row = next(r for r in self.waiting if r.name == key)
        return f"{sign} {row.title}"

    def _told(self, key: str) -> list[str]:
        if key == "in force":
            return [f"{r.title}: {r.words}" for r in self.in_force]
        row = next(r for r in self.waiting if r.name == key)
        lines = [row.words, f"cost: {row.cost}" if row.cost else "", f"why it waits: {row.why}" if row.why else ""]
        return [line for line in lines if line]
