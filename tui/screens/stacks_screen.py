"""The evidence files of an incident: two stack dumps of a process side by side, process states, end of the log."""

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual.binding import BindingType

from ...core.model.ports.screen import IncidentFiles
from ...core.views.screens.stack_dumps import Sheet, Spread, spreads
from ..keys import Key
from ..panes.page_pane import PagePane
from ..panes.pane import Pane
from ..run_session import Application, RunSession
from ..ui.paragraph import Paragraph
from .box import Box
from .place_screen import PlaceScreen, bindings_of

BESIDE_FROM = 100
"""Columns from which two dumps are side by side; on narrower screens one is above the other."""
NOTHING_KEPT = (
    "There are no files of this incident. Stacks are dumped from a live process before it is ended, so at hangs; "
    "a process that crashed cannot be dumped."
)
FOLDER_UNKNOWN = "This screen cannot read the incident's folder."

STACK_KEYS: tuple[Key, ...] = (
    Key(key="right", shown="← →", action="turn(1)", label="next file", help="the next process or file (also tab)"),
    Key(key="down", shown="↑ ↓", action="scroll(1)", label="scroll", help="scroll (also PgUp, PgDn, Home, End)"),
    Key(key="question_mark", shown="?", action="help", label="help", help="this list", always=True),
    Key(key="escape", shown="Esc", action="back", label="back", help="back to the incident", always=True),
)
ALSO: tuple[tuple[str, str], ...] = (
    ("left", "turn(-1)"), ("tab", "turn(1)"), ("shift+tab", "turn(-1)"), ("up", "scroll(-1)"), ("j", "scroll(1)"),
    ("pageup", "scroll(-15)"), ("pagedown", "scroll(15)"), ("home", "scroll(-100000)"), ("end", "scroll(100000)"),
    ("s", "back"),
)  # fmt: skip


class StacksScreen(PlaceScreen):
    """Belongs to one incident."""

    place = "incidents"
    keys = STACK_KEYS
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(STACK_KEYS, ALSO)

    def __init__(self, application: Application, session: RunSession, incident: int, title: str) -> None:
        super().__init__(application, session)
        self.incident, self.subject = incident, title
        self.pages: tuple[Spread, ...] | None = None
        self.page = 0
        self._trouble = ""

    def bodies(self) -> Sequence[Pane]:
        self.left, self.right = PagePane(id="left"), PagePane(id="right")
        return (self.left, self.right)

    def boxes(self, width: int, top: int, height: int) -> dict[str, Box]:
        """Side by side, or one above the other, or one alone."""
        if len(self._sheets) < 2:
            return {"left": (0, top, width, height)}
        if width >= BESIDE_FROM:
            half = width // 2
            return {"left": (0, top, half, height), "right": (half, top, width - half, height)}
        half = height // 2
        if half < 3:
            return {"left": (0, top, width, height)}
        return {"left": (0, top, width, half), "right": (0, top + half, width, height - half)}

    @property
    def _sheets(self) -> tuple[Sheet, ...]:
        return self.pages[self.page].sheets if self.pages else ()

    def on_mount(self) -> None:
        super().on_mount()
        source = self.session.run.incident_files if self.session is not None else None
        if source is None:
            self.pages, self._trouble = (), FOLDER_UNKNOWN
            self.draw()
            return

        read_spreads(self, source, self.incident, self._take)

    def _take(self, pages: tuple[Spread, ...], trouble: str) -> None:
        self.pages, self._trouble = pages, trouble
        self.draw()

    def show(self) -> None:
        """The sheets of this page."""
        if not self.pages:
            text = "Reading …" if self.pages is None else self._trouble
            self.left.show([Paragraph(text=text, style="label")], title=f"files of: {self.subject}")
            return
        spread = self.pages[self.page]
        beside = self.size.width >= BESIDE_FROM
        for pane, sheet in zip((self.left, self.right), spread.sheets, strict=False):
            first = pane is self.left
            name = f"{spread.title} · {sheet.title}" if sheet.title != spread.title else sheet.title
            pane.show(
                sheet_lines(sheet, spread.verdict if first else "", level=beside and bool(spread.verdict)), title=name,
                hint=f"{self.page + 1} of {len(self.pages)}" if first else "",
            )  # fmt: skip

    def action_turn(self, pages: int) -> None:
        """Show the next or previous process or file."""
        if self.pages:
            self.page = (self.page + pages) % len(self.pages)
            self.left.top = self.right.top = 0
            self.draw()

    def action_scroll(self, rows: int) -> None:
        self.left.scroll(rows)
        self.right.scroll(rows)

    def action_back(self) -> None:
        self.app.pop_screen()


def read_spreads(
    screen: PlaceScreen, source: IncidentFiles, incident: int, take: Callable[[tuple[Spread, ...], str], None]
) -> None:
    """Read an incident's folder in a thread; ``take(spreads, why there are none)``."""

    def read() -> Callable[[], None]:
        try:
            found, trouble = spreads(source.files(incident)), NOTHING_KEPT
        except OSError as error:
            found, trouble = (), f"The folder cannot be read: {error.strerror or error}"
        return lambda: take(found, trouble)

    screen.tasks.submit(read)


def sheet_lines(sheet: Sheet, verdict: str, *, level: bool = False) -> list[Paragraph]:
    """A dump from its first thread on (the process is named in the title), any other file whole.

    ``level``: as far down as beside a sheet with a verdict.
    """
    found = [Paragraph(text=verdict, style="accent"), Paragraph()] if verdict or level else []
    begin = next((i for i, line in enumerate(sheet.lines) if line.startswith("Thread ")), 0)
    for number, line in enumerate(sheet.lines[begin:], begin):
        heading = line.startswith(("Thread ", "== "))
        style = "warning" if number in sheet.differs else "strong" if heading else "text"
        found.append(Paragraph(text=line, style=style, hard=True))
    if sheet.cut:
        found.append(Paragraph(text="(cut here; the whole file is in the incident's folder)", style="label"))
    return found
