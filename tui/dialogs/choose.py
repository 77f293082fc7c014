"""Dialogs to choose a checkpoint to resume from, its settings, and a way to act."""

from collections.abc import Sequence

from textual import events
from textual.app import ComposeResult
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from ...core.model.fact import RemedyApplied, RemedyProposed
from ...core.model.text import verdict_word
from ...core.views import quantity
from ...core.views.checkpoint_list import CheckpointRow
from ...core.views.columns import Column, text_rows
from ...core.views.state.concerns import DOUBTS
from ...core.views.words import remedy_words
from .dialog import Dialog, hanging

BEGINNING = "from-the-beginning"
ACT_ROWS = (
    ("all", "end a hung trainer, restart a failed one"),
    ("ask", "ask first: nothing is ended or started before an answer"),
    ("notify", "notify only: nothing is ended or started"),
)


class Choice(Dialog[str]):
    """A list; Enter answers with the id of the row. Its arrows move in it."""

    def __init__(
        self, title: str, body: str, rows: Sequence[tuple[str, str]], hint: str, *, chosen: str | None = None
    ) -> None:
        super().__init__(title, body, hint)
        self.rows = tuple(rows)
        self.chosen = chosen

    def more(self) -> ComposeResult:
        options = OptionList(*(Option(self._row(i), id=str(i)) for i in range(len(self.rows))), markup=False)
        options.highlighted = next((i for i, (key, _) in enumerate(self.rows) if key == self.chosen), 0)
        yield options

    def on_mount(self) -> None:
        self.query_one(OptionList).focus()

    def action_move(self, rows: int) -> None:
        options = self.query_one(OptionList)
        for _ in range(abs(rows)):
            options.action_cursor_down() if rows > 0 else options.action_cursor_up()

    def on_resize(self, _: events.Resize) -> None:
        for options in self.query(OptionList):
            for i in range(len(self.rows)):
                options.replace_option_prompt_at_index(i, self._row(i))

    def _row(self, at: int) -> str:
        return hanging(self.rows[at][1], self._room)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self.rows[event.option_index][0])


def _mark(view: CheckpointRow) -> str:
    if view.after_nan:
        return f"  {DOUBTS['nan']}"
    if not view.resume:
        return ""
    if view.verdict == "opaque":
        return "  ← newest"
    return "  ← newest verified" if view.judged.understood else "  ← newest, not verified"


RESUME_POINTS: tuple[Column[CheckpointRow], ...] = (
    Column(title="step", text=lambda v: v.step, right=True),
    Column(title="size", text=lambda v: v.size, right=True),
    Column(title="age", text=lambda v: v.age, right=True),
    Column(title="verdict", text=lambda v: f"{verdict_word(v.verdict)}{_mark(v)}"),
)


def choose_checkpoint(views: Sequence[CheckpointRow]) -> Choice:
    """The dialog to choose the checkpoint to resume from; those that are damaged or hold NaN are counted only.

    The beginning is offered first only if nothing else is there, understood or not.
    """
    usable = [v for v in views if v.verdict in {"complete", "opaque"} or not v.judged.understood]
    rows = list(zip([v.path for v in usable], text_rows(RESUME_POINTS, usable), strict=True))
    offered = {path for path, _ in rows}
    with_nan = sum(v.verdict == "nonfinite" for v in views if v.path not in offered)
    damaged = len(views) - len(rows) - with_nan
    told = [quantity.plural(damaged, "damaged one")] * bool(damaged) + [f"{with_nan} with NaN or Inf"] * bool(with_nan)
    best = next((v.path for v in views if v.resume), BEGINNING)
    if best == BEGINNING:
        best = next((v.path for v in views if not (v.judged.understood or v.after_nan)), BEGINNING)
    if best == BEGINNING:
        rows.insert(0, (BEGINNING, "from the beginning: there is no verified checkpoint"))
    else:
        rows.append((BEGINNING, "from the beginning"))
    body = "Which checkpoint?" + (f" {' and '.join(told)} left out." if told else "")
    return Choice("Resume", body, rows, "[Enter] choose   [Esc] cancel", chosen=best)


def choose_act(current: str) -> Choice:
    """The dialog to choose what is done without a person."""
    rows = [(name, f"{name:<6}  {words}{'  ← now' if name == current else ''}") for name, words in ACT_ROWS]
    return Choice("Without you", "What is done without you?", rows, "[Enter] choose   [Esc] cancel", chosen=current)


KEEP, UNDO = "", "undo"


def choose_remedies(applied: Sequence[RemedyApplied], proposed: Sequence[RemedyProposed]) -> Choice:
    """The dialog to choose the settings of a resume: KEEP, the name of a proposal, or UNDO of all that was applied."""
    changed = "; ".join(f"{r.title}: {remedy_words(r)}" for r in applied)
    rows = [(KEEP, f"keep what was changed: {changed}" if applied else "the settings as they are")]
    for r in proposed:
        more = [f"cost: {r.cost}"] * bool(r.cost) + [f"why it waits: {r.why}"] * bool(r.why)
        rows.append((r.name, "; ".join((f"{r.title}: {remedy_words(r)}", *more))))
    rows += [(UNDO, f"undo what was changed: {changed}")] if applied else []
    return Choice("Resume: with what?", "With which settings?", rows, "[Enter] choose   [Esc] cancel", chosen=KEEP)
