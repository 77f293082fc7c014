"""What the list of runs does with runs: search, compare, hide, forget."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from ...core.model.run_card import RunCard
from ...core.views.screens.confirmation import Price
from ..dialogs.dialog import Ask, confirm

if TYPE_CHECKING:
    from ...core.views.screens.run_comparison import RunComparison
    from .runs_screen import RunsScreen

OPEN_HERE = "{} is open on this screen: open another run first."


class SearchRuns(Ask):
    """Words that a run must have; none shows all."""

    def objection(self, text: str) -> str:  # noqa: ARG002
        """Nothing is an answer, too."""
        return ""


class RunTasks:
    def __init__(self, on: "RunsScreen") -> None:
        self._on = on

    def search(self) -> None:
        """Open the dialog for the words that a run must contain to be listed."""
        on = self._on

        def answered(words: str | None) -> None:
            if words is not None:
                on.choose(msgspec.structs.replace(on.choice, words=words))

        body = "Words of its name, id, folder, command or state; nothing shows all."
        dialog = SearchRuns("Search the runs", body, "[Enter] search   [Esc] cancel", before=on.choice.words)
        on.app.push_screen(dialog, answered)

    def compare(self, a: RunCard, b: RunCard) -> None:
        """Read both in a thread, then show how they differ."""
        picker = self._on.application.picker
        if picker is None:
            return

        def read() -> Callable[[], None]:
            from ...core.views.screens.run_comparison import compare_runs

            try:
                found = compare_runs(a, b, picker.settings(a.id), picker.settings(b.id))
            except RuntimeError as error:
                said = str(error)
                return lambda: self._on.show_message(said)
            return lambda: self._show(found)

        self._on.tasks.submit(read)

    def _show(self, found: "RunComparison") -> None:
        from ...core.views.screens.run_comparison import comparison_markdown
        from ..dialogs.comparison_dialog import ComparisonChoice, ComparisonDialog

        def chosen(choice: ComparisonChoice | None) -> None:
            if choice is not None:
                self._on.application.copy(comparison_markdown(found))

        self._on.app.push_screen(ComparisonDialog(found), chosen)

    def hide(self, cards: Sequence[RunCard]) -> None:
        """Hide them; if all of them are hidden, show them again."""
        picker = self._on.application.picker
        if picker is None or not cards:
            return
        hidden = not all(card.hidden for card in cards)
        names = _names(cards)
        done = f"Hidden: {names}. H shows hidden runs, h shows one again." if hidden else f"Shown again: {names}."
        self._for_each(cards, lambda card: picker.hide(card.id, hidden), done)

    def forget(self, cards: Sequence[RunCard]) -> None:
        """Ask with what would be removed, then remove it. The outputs of the runs are never touched."""
        picker, on = self._on.application.picker, self._on
        if picker is None or not cards:
            return
        if on.current in {card.id for card in cards}:
            on.show_message(OPEN_HERE.format(next(card.name for card in cards if card.id == on.current)))
            return

        def ask(kept: Sequence[str]) -> None:
            price = Price(
                title=f"Forget {_names(cards)}?",
                lines=(*(f"Removes {text}." for text in kept), "Checkpoints and all other outputs stay."),
                confirm="forget",
            )
            confirm(on.app, price, lambda: self._for_each(cards, _forgetting, f"Forgotten: {_names(cards)}."))

        def _forgetting(card: RunCard) -> None:
            picker.forget(card.id)

        def read() -> Callable[[], None]:
            try:
                kept = [picker.kept_about(card.id) for card in cards]
            except RuntimeError as error:
                said = str(error)
                return lambda: on.show_message(said)
            return lambda: ask(kept)

        on.tasks.submit(read)

    def _for_each(self, cards: Sequence[RunCard], do: Callable[[RunCard], None], done: str) -> None:
        def work() -> Callable[[], None]:
            said = done
            for card in cards:
                try:
                    do(card)
                except RuntimeError as error:
                    said = str(error)
                    break

            def show() -> None:
                self._on.marked = frozenset()
                self._on.show_message(said)
                self._on.action_reload()

            return show

        self._on.tasks.submit(work)


def _names(cards: Sequence[RunCard]) -> str:
    names = [card.name for card in cards[:3]]
    return ", ".join(names) + (f" and {len(cards) - 3} more" if len(cards) > 3 else "")
