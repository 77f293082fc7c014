"""The checkpoints on the dashboard."""

from ...core.model.text.verdict_words import verdict_word
from ...core.views.checkpoint_list import CheckpointView, how_many
from ..ui.cells import Line, Span, pad, right, width_of
from .pane import Pane


class CheckpointsPane(Pane):
    """Checkpoints of the run on the dashboard, newest first, with verdict and step."""

    views: tuple[CheckpointView, ...] = ()
    reason = ""

    def show(self, views: tuple[CheckpointView, ...], reason: str = "No checkpoint yet.") -> None:
        """Draw them; ``reason`` is shown if there are none."""
        self.views, self.reason = views, reason
        self.set_title(f"checkpoints · {how_many(v.verdict for v in views)}" if views else "checkpoints")
        self.redraw()

    def lines(self, width: int, height: int) -> list[Line]:
        if not self.views:
            return [(("label", self.reason),)]
        shown = self._newest(height)
        step = max(len(v.step) for v in shown)
        steps = all(v.step.startswith("step ") for v in shown)  # else names stand there, which begin at the left
        size = max(len(v.size) for v in shown)
        age = max(len(v.age) for v in shown)
        lines: list[Line] = []
        for v in shown:
            line: list[Span] = [
                (v.level, f"{self.glyphs.levels[v.level]} "),
                ("strong" if v.resume else "text", right(v.step, step) + " " if steps else pad(v.step, step + 1)),
                ("text", right(v.size, size + 1)),
                ("label", right(v.age, age + 2) + "  "),
                (v.level if v.level != "safe" else "label", verdict_word(v.verdict)),
            ]
            if v.score:
                line.append(("accent" if v.score.endswith("best") else "text", f" · {v.score}"))
            if v.resume:
                mark = f" {self.glyphs.cursor} resume"
                line.append(("accent", mark if width_of(line) + len(mark) <= width else mark[:2]))
            elif v.reason:
                line.append(("label", f": {v.reason}"))
            lines.append(tuple(line))
        return lines

    def _newest(self, rows: int) -> tuple[CheckpointView, ...]:
        """So many; the last one is that of a resume if it is older."""
        older = [v for v in self.views[rows:] if v.resume]
        return (*self.views[: rows - 1], *older) if older and rows > 1 else self.views[:rows]
