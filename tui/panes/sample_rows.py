"""The list of sample images, newest first."""

from collections.abc import Sequence

from ...core.views.screens.sample_list import SampleRow
from ..ui.cells import Line, cut, pad, right
from .rows_pane import RowsPane

NAME_FROM = 44


class SampleRows(RowsPane):
    """Shows SampleRows."""

    def show_samples(self, views: Sequence[SampleRow], message: str) -> None:
        """Draw them."""
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
