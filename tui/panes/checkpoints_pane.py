"""The checkpoints pane: newest first, with size, age and verdict."""

from ...core.views.checkpoint_list import CheckpointView
from ..ui.cells import Line, Span, pad, right, width_of
from .pane import Pane


class CheckpointsPane(Pane):
    """Shows CheckpointViews."""

    views: tuple[CheckpointView, ...] = ()
    reason = ""

    def show(self, views: tuple[CheckpointView, ...], reason: str = "No checkpoint yet.") -> None:
        """Draw them; ``reason`` stands there when there are none."""
        self.views, self.reason = views, reason
        good = sum(v.verdict == "complete" for v in views)
        self.set_title(f"checkpoints · {good} good of {len(views)}" if views else "checkpoints")
        self.redraw()

    def lines(self, width: int, height: int) -> list[Line]:
        """A row each."""
        if not self.views:
            return [(("label", self.reason),)]
        shown = self.views[:height]
        step = max(len(v.step) for v in shown)
        size = max(len(v.size) for v in shown)
        age = max(len(v.age) for v in shown)
        lines: list[Line] = []
        for v in shown:
            line: list[Span] = [
                (v.level, f"{self.glyphs.levels[v.level]} "),
                ("strong" if v.resume else "text", pad(v.step, step + 1)),
                ("text", right(v.size, size + 1)),
                ("label", right(v.age, age + 2) + "  "),
                (v.level if v.level != "safe" else "label", v.verdict),
            ]
            if v.resume:
                mark = f" {self.glyphs.cursor} resume"
                line.append(("accent", mark if width_of(line) + len(mark) <= width else mark[:2]))
            elif v.reason:
                line.append(("label", f": {v.reason}"))
            lines.append(tuple(line))
        return lines
