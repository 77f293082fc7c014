"""Sample images: the list of them, and the picture with its caption."""

from collections.abc import Sequence

from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from textual.events import Resize
from textual.message import Message
from textual.strip import Strip

from ...core.views.screens.checkpoint_details import SampleRow
from ..ui.cells import Line, cut, pad, right, wrap_words
from ..ui.picture import Picture
from .pane import Pane
from .rows_pane import RowsPane

NAME_FROM = 44


class SampleRows(RowsPane):
    """The list of sample images with a cursor."""

    def show_samples(self, views: Sequence[SampleRow], message: str) -> None:
        self.set_title(f"samples · {len(views)}" if views else "samples")
        width = max(0, self.size.width - 2)
        moment = max((len(v.moment) for v in views), default=0)
        age = max((len(v.age) for v in views), default=0)
        self.show([self._row(v, moment, age, width) for v in views], message=message)

    @staticmethod
    def _row(v: SampleRow, moment: int, age: int, width: int) -> Line:
        line: list[tuple[str, str]] = [("strong", pad(v.moment, moment)), ("label", "  " + right(v.age, age))]
        left = width - moment - age - 2
        if width >= NAME_FROM or not v.moment:
            line += [("label", right(v.size, 10)), ("text", "  " + cut(v.name, max(0, left - 12)))]
        elif left >= 10:
            line.append(("label", right(v.size, min(10, left))))
        return tuple(line)


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
        """Two rows of pixels."""
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
        ground = self._look("text")
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
