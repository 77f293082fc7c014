"""Key i: the newest sample images of the run, shown in the terminal with their step and age."""

from collections.abc import Sequence
from time import time
from typing import TYPE_CHECKING, ClassVar

from textual.binding import BindingType

from ...core.model.checkpoint import Sample
from ...core.views.screens.checkpoint_details import SampleRow, sample_rows
from ..keys import Key
from ..panes.pane import Pane
from ..panes.rows_pane import RowsPane
from ..panes.sample_panes import CaptionPane, PicturePane, SampleRows
from ..run_session import Box
from ..ui.cells import Line, clauses
from ..ui.picture import EXTRA, Picture, can_decode, decode
from .place_screen import HELP, RunPage, bindings_of

if TYPE_CHECKING:
    from ..app import TrainwatchApp
    from .dashboard import Dashboard


AGAIN_S = 5.0
"""How often the folder is read again, seconds."""
SIDE_FROM = 100
SIDE_COLUMNS = 46
"""Columns of the list when it is beside the picture."""
NO_DIRECTORY = "The output directory of this training is not known. Set output_dir in trainwatch.toml."
NONE_YET = (
    "No PNG, JPEG or WebP below {} yet. kohya writes them into sample/ (sample_every_n_steps), DiT into samples/."
)
MISSING = f"Pictures need an extra that is not installed: pip install '{EXTRA}'. The files are listed without them."

SAMPLE_KEYS: tuple[Key, ...] = (
    Key(key="right", shown="← →", action="move(1)", label="newer/older", help="the next older picture (←: newer)"),
    Key(key="home", shown="Home", action="move(-100000)", label="newest",
        help="the newest one, and each that comes after it"),
    Key(key="y", shown="y", action="copy", label="copy path", help="copy the picture's path"),
    Key(key="tab", shown="tab", action="turn", label="list", help="picture alone, or with the list"),
    HELP,
    Key(key="escape", shown="Esc", action="app.leave_place", label="back", help="back to the previous screen",
        always=True),
)  # fmt: skip
ALSO = (("left", "move(-1)"), ("up", "move(-1)"), ("pagedown", "move(10)"), ("pageup", "move(-10)"))


class SamplesScreen(RunPage):
    """Picture and list. The newest picture is shown until another is chosen."""

    place = "samples"
    tab = "checkpoints"
    keys = SAMPLE_KEYS
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(SAMPLE_KEYS, ALSO)

    def __init__(self, application: "TrainwatchApp", session: "Dashboard") -> None:
        super().__init__(application, session)
        self.samples: tuple[Sample, ...] | None = None
        self.rows: tuple[SampleRow, ...] = ()
        self.list_shown = True
        self.shown: tuple[str, float, tuple[int, int]] | None = None
        """(path, mtime, room) of what is drawn or being decoded."""
        self.picture: Picture | None = None
        self.trouble = ""
        self._chosen: str | None = None
        self._reading = False
        self._asked = 0

    def bodies(self) -> Sequence[Pane]:
        self.caption = CaptionPane(id="caption", classes="-bare")
        self.view, self.table = PicturePane(id="picture", classes="-bare"), SampleRows(id="samples")
        return (self.caption, self.view, self.table)

    def boxes(self, width: int, top: int, height: int) -> dict[str, Box]:
        """The picture gets the rest of the screen."""
        if not self.samples:
            return {"picture": (0, top, width, height)}
        if not can_decode():
            words = min(6, height - 3)
            if words < 3:
                return {"samples": (0, top, width, height)}
            return {"picture": (0, top, width, words), "samples": (0, top + words, width, height - words)}
        if self.list_shown and width >= SIDE_FROM:
            left = width - SIDE_COLUMNS
            return _captioned(left, top, height) | {"samples": (left, top, SIDE_COLUMNS, height)}
        rows = min(len(self.samples) + 2, 5, height // 3) if self.list_shown else 0
        if rows < 3:
            return _captioned(width, top, height)
        return _captioned(width, top, height - rows) | {"samples": (0, top + height - rows, width, rows)}

    def on_mount(self) -> None:
        super().on_mount()
        self.reload()
        if self.application.interval_s > 0:
            self.set_interval(AGAIN_S, self.reload)

    def reload(self) -> None:
        """Read the folder in a thread."""
        source = self.session.run.samples
        if source is None or source.directory is None or self._reading:
            return
        self._reading = True
        self.tasks.fetch(source.newest, self._take)

    def _take(self, samples: Sequence[Sample] | None, trouble: str) -> None:
        self._reading = False
        self.samples, self.trouble = tuple(samples or ()), trouble
        self.draw()

    @property
    def chosen(self) -> Sample | None:
        """The picture that is shown: the newest until another is chosen."""
        found = self.samples or ()
        return next((s for s in found if s.path == self._chosen), found[0] if found else None)

    @property
    def fits(self) -> bool:
        """A picture is shown, shrunk for the room that it has."""
        if self.picture is None:
            return False
        (width, height), (columns, rows) = self.picture.pixels.size, self.view.size
        return bool(width <= columns and height <= 2 * rows)

    def show(self) -> None:
        samples = self.samples or ()
        self.rows = sample_rows(samples, self.now.now_wall or time())
        chosen = self.chosen
        self.table.cursor = samples.index(chosen) if chosen is not None else 0
        self.table.show_samples(self.rows, "")
        if chosen is not None and can_decode():
            self._decode(chosen)
        self.caption.show(self._caption())
        self.view.show(self.picture if chosen is not None else None, self._message())

    def _caption(self) -> Line:
        if not self.rows:
            return ()
        row = self.rows[self.table.cursor]
        size = f"{self.picture.width} × {self.picture.height}" if self.picture is not None else ""
        place = f"{self.table.cursor + 1} of {len(self.rows)}"
        text = clauses([p for p in (row.age, place, size, row.name) if p], self.size.width - len(row.moment) - 5)
        return (("strong", row.moment), ("label", f" · {text}" if row.moment else text))

    def _message(self) -> str:
        source = self.session.run.samples
        if source is None or source.directory is None:
            return NO_DIRECTORY
        if self.samples is None:
            return "Looking for pictures …"
        if self.trouble and not self.samples:
            return self.trouble
        if not self.samples:
            return NONE_YET.format(source.directory)
        if not can_decode():
            return MISSING
        return self.trouble or ("" if self.picture is not None else "Reading …")

    def _decode(self, sample: Sample) -> None:
        """Decode what is chosen, in a thread, unless it is shown already; an older answer is dropped."""
        columns, rows = self.view.size
        if columns < 2 or rows < 1:
            return
        wanted = (sample.path, sample.mtime, (columns, rows))
        source = self.session.run.samples
        if wanted == self.shown or source is None:
            return
        self.shown = wanted
        self._asked += 1
        asked, room = self._asked, (columns, 2 * rows)
        if self.picture is None:
            self.trouble = ""

        def take(picture: Picture | None, trouble: str) -> None:
            if asked == self._asked:
                self.picture, self.trouble = picture, f"{sample.name} {trouble}." if trouble else ""
                self.draw()

        self.tasks.fetch(lambda: decode(sample.path, room), take)

    def on_picture_pane_room(self, _: PicturePane.Room) -> None:
        self.draw()

    def row_chosen(self, pane: RowsPane) -> None:
        """Another picture; on the newest: follow it."""
        self._chosen = self.rows[pane.cursor].path if pane.cursor > 0 else None
        self.trouble = ""
        self.draw()

    def action_turn(self) -> None:
        self.list_shown = not self.list_shown
        self.draw()

    def action_copy(self) -> None:
        chosen = self.chosen
        if chosen is not None:
            self.application.copy(chosen.path)


def _captioned(width: int, top: int, height: int) -> dict[str, Box]:
    """The caption, and the picture below it."""
    return {"caption": (0, top, width, 1), "picture": (0, top + 1, width, height - 1)}
