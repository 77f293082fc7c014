"""The runs that can be started here: those of trainwatch.toml, and the typed command."""

from collections.abc import Sequence

from ...core.model.launch.launch_preview import LaunchOffer
from ...core.views.screens.launch import offer_note
from ..ui.cells import Line, Span, cut, pad, right
from .rows_pane import RowsPane

NAME_MOST = 24
TYPED = "a command"
TYPE_IT = "type one: no file is needed"


class OffersPane(RowsPane):
    """Shows LaunchOffers, the typed command last."""

    def show_offers(self, offers: Sequence[LaunchOffer], typed: str, where: str) -> None:
        self.set_title(f"start · {where}" if where else "start")
        width = max(0, self.size.width - 2)
        name = min(NAME_MOST, max((len(o.name) for o in offers), default=0), width // 3)
        name = max(name, len(TYPED))
        note = max((len(offer_note(o.run_id, o.state)) for o in offers), default=0)
        rows = [self._row(o.name, o.command, offer_note(o.run_id, o.state), (name, note, width)) for o in offers]
        rows.append(self._row(TYPED, typed or TYPE_IT, "", (name, note, width), faint=not typed))
        self.show(rows)

    @staticmethod
    def _row(title: str, text: str, state: str, cells: tuple[int, int, int], *, faint: bool = False) -> Line:
        """``cells``: those of the name, of the state, of the whole row."""
        name, note, width = cells
        room = width - name - 2 - (note + 2 if note else 0)
        line: list[Span] = [
            ("strong", pad(cut(title, name), name) + "  "),
            ("label" if faint else "text", pad(cut(text, room), max(0, room))),
        ]
        if note:
            line.append(("accent", "  " + right(state, note)))
        return tuple(line)
