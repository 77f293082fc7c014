"""Key i: the newest sample images of the run, shown in the terminal with their step and age."""

from collections.abc import Sequence
from time import time
from typing import cast

from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from textual.events import Resize
from textual.message import Message
from textual.strip import Strip

from ...core.model.checkpoint import Sample
from ...core.views.checkpoint_list import step_words
from ...core.views.screens.checkpoint_details import age_words, sample_columns
from ..keys import HELP, Key
from ..panes.pane import Pane
from ..panes.rows_pane import RowsPane
from ..run_session import Band, Box, stack
from ..ui.cells import Line, clauses, wrap_words
from ..ui.picture import EXTRA, Picture, can_decode, decode
from .place_screen import RunPage, above

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
    Key("← →", "move(±1)", "newer/older", "the next older picture (←: newer)"),
    Key("Home", "move(-100000)", "newest", "the newest one, and each that comes after it"),
    Key("y", "copy", "copy path", "copy the picture's path"),
    Key("tab", "turn", "list", "picture alone, or with the list"),
    HELP,
    Key("Esc", "app.leave_place", "back", "back to the previous screen", always=True),
)


class SamplesScreen(RunPage):
    """Picture and list. The newest picture is shown until another is chosen."""

    place = "samples"
    tab = "checkpoints"
    keys = SAMPLE_KEYS
    samples: tuple[Sample, ...] | None = None
    list_shown = True
    shown: tuple[str, float, tuple[int, int]] | None = None
    """(path, mtime, room) of what is drawn or being decoded."""
    picture: Picture | None = None
    trouble = ""
    _asked = 0

    def bodies(self) -> Sequence[Pane]:
        self.caption = CaptionPane(id="caption", classes="-bare")
        self.view, self.table = PicturePane(id="picture", classes="-bare"), RowsPane(id="samples")
        return (self.caption, self.view, self.table)

    def boxes(self, width: int, top: int, height: int) -> dict[str, Box]:
        if not self.samples:
            return {"picture": (0, top, width, height)}
        if not can_decode():
            if (words := min(6, height - 3)) < 3:
                return {"samples": (0, top, width, height)}
            return above((0, top, width, height), words, "picture", "samples")
        side = SIDE_COLUMNS if self.list_shown and width >= SIDE_FROM else 0
        rows = min(len(self.samples) + 2, 5, height // 3) if self.list_shown and not side else 0
        rows, left = rows if rows >= 3 else 0, width - side
        shown: tuple[Band, ...] = ((1, (("caption", left),)), (height - rows - 1, (("picture", left),)))
        bands: tuple[Band, ...] = ((height - rows, ((shown, left), ("samples", side))), (rows, (("samples", width),)))
        return stack((0, top, width, height), bands)

    def on_mount(self) -> None:
        super().on_mount()
        self.every(AGAIN_S, self.reload)

    def reload(self) -> None:
        """Read the folder in a thread."""
        services = self.session.run.services
        if services.directory is not None:
            self.read(services.newest, self._take)

    def _take(self, samples: Sequence[Sample] | None, trouble: str) -> None:
        self.samples, self.trouble = tuple(samples or ()), trouble

    @property
    def chosen(self) -> Sample | None:
        """The picture that is shown: the newest until another is chosen."""
        return cast("Sample | None", self.table.here)

    @property
    def fits(self) -> bool:
        if self.picture is None:
            return False
        (width, height), (columns, rows) = self.picture.pixels.size, self.view.size
        return bool(width <= columns and height <= 2 * rows)

    def show(self) -> None:
        samples = self.samples or ()
        wall, title = self.now.now_wall or time(), f"samples · {len(samples)}" if samples else "samples"
        self.table.show_table(sample_columns(wall), samples, title=title, ids=lambda sample: sample.path)
        chosen = self.chosen
        if chosen is not None and can_decode():
            self._decode(chosen)
        self.caption.show(() if chosen is None else self._caption(chosen, wall))
        self.view.show(self.picture if chosen is not None else None, self._message())

    def _caption(self, chosen: Sample, wall: float) -> Line:
        size = f"{self.picture.width} × {self.picture.height}" if self.picture is not None else ""
        place, moment = f"{self.table.cursor + 1} of {len(self.table.rows)}", step_words(chosen, "")
        parts = filter(None, (age_words(chosen, wall), place, size, chosen.name))
        text = clauses([*parts], self.size.width - len(moment) - 5)
        return (("strong", moment), ("label", f" · {text}" if moment else text))

    def _message(self) -> str:
        directory = self.session.run.services.directory
        if directory is None:
            return NO_DIRECTORY
        if self.samples is None:
            return "Looking for pictures …"
        if self.trouble and not self.samples:
            return self.trouble
        if not self.samples:
            return NONE_YET.format(directory)
        if not can_decode():
            return MISSING
        return self.trouble or ("" if self.picture is not None else "Reading …")

    def _decode(self, sample: Sample) -> None:
        """Decode what is chosen, in a thread, unless it is shown already; an older answer is dropped."""
        columns, rows = self.view.size
        if columns < 2 or rows < 1:
            return
        wanted = (sample.path, sample.mtime, (columns, rows))
        if wanted == self.shown:
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

    def on_picture_pane_room(self, _: "PicturePane.Room") -> None:
        self.draw()

    def row_chosen(self, pane: RowsPane) -> None:
        """Another picture; on the newest: follow it."""
        pane.chosen = pane.chosen if pane.cursor else None
        self.trouble = ""
        self.draw()

    def action_turn(self) -> None:
        self.list_shown = not self.list_shown
        self.draw()

    def copied(self) -> str:
        return "" if self.chosen is None else self.chosen.path


# The picture and its caption.

HALF = "▀"


class PicturePane(Pane):
    """Shows a Picture, or a sentence."""

    picture: Picture | None = None
    message = ""

    class Room(Message):
        """The size changed: the picture must be decoded again."""

    def on_resize(self, event: Resize) -> None:
        super().on_resize(event)
        self.post_message(self.Room())

    def show(self, picture: Picture | None, message: str) -> None:
        if picture is not self.picture or message != self.message:
            self.picture, self.message = picture, message
            self._strips.clear()
            self.refresh()
        self.redraw()

    def lines(self, width: int, height: int) -> list[Line]:
        """The sentence, in the middle; nothing under a picture."""
        if self.picture is not None:
            return []
        rows = wrap_words(self.message, max(8, width - 4))
        above: list[Line] = [(("text", ""),)] * max(0, (height - len(rows)) // 2)
        return above + [(("label", f"  {row}"),) for row in rows]

    def render_line(self, y: int) -> Strip:
        if self.picture is None:
            return super().render_line(y)
        strip = self._strips.get(y)
        if strip is None:
            self.paints += 1
            strip = self._strips[y] = self._pixels(y, self.picture)
        return strip

    def _pixels(self, y: int, picture: Picture) -> Strip:
        width, height = self.size
        columns, pixel_rows = picture.pixels.size
        rows = (pixel_rows + 1) // 2
        left, top = max(0, (width - columns) // 2), max(0, (height - rows) // 2)
        row = (y - top) * 2
        ground = self.styled("text")
        if not 0 <= row < pixel_rows:
            return Strip([Segment(" " * width, ground)], width)
        segments = [Segment(" " * left, ground)]
        get = picture.pixels.getpixel
        for x in range(min(columns, width)):
            upper = Color.from_rgb(*get((x, row)))
            under = Color.from_rgb(*get((x, row + 1))) if row + 1 < pixel_rows else ground.bgcolor
            if self.glyphs.braille:
                segments.append(Segment(HALF, Style(color=upper, bgcolor=under)))
            else:
                segments.append(Segment(" ", Style(bgcolor=upper)))
        used = left + min(columns, width)
        segments.append(Segment(" " * max(0, width - used), ground))
        return Strip(segments, width)


class CaptionPane(Pane):
    """One line on the picture. A pane of its own: its age changes by the second, and the picture is not repainted."""

    line: Line = ()

    def show(self, line: Line) -> None:
        self.line = line
        self.redraw()

    def lines(self, width: int, height: int) -> list[Line]:
        del width, height
        return [self.line]
