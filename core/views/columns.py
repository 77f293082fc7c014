"""The columns of a list: each has its heading, its width and the text of its cells in one place.

A list on a screen, or one that a verb prints, is a tuple of columns; what is in it is drawn, so a new column is one
entry. A column of numbers is right-aligned, so that units and digits stand below each other.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import msgspec

from ..model.checkpoint import Checkpoint
from ..model.launch import QueueEntry, TrialResult
from ..model.text import gib, verdict_word
from . import quantity
from .words import STATE_WORDS

Row = TypeVar("Row")


class Column(msgspec.Struct, Generic[Row], frozen=True, kw_only=True):
    """One column. Widths are in terminal cells.

    ``width``: of the cell, 0 = as long as its text; ``fit``: at most ``width`` (0 = any), no wider than the longest
    text; ``fill``: what the others leave.
    ``from_width``, ``below_width``: the list's width from which on, and below which, the column is shown.
    ``before``, ``after``: blanks around it. ``share``: drawn as a bar of this share (0..1, None = blank) instead of
    text. ``style``: name of a style, or a function that returns it for a row.
    """

    title: str
    text: Callable[[Row], str] = lambda _row: ""
    width: int = 0
    fit: bool = False
    fill: bool = False
    right: bool = False
    before: int = 0
    after: int = 0
    style: str | Callable[[Row], str] = "text"
    from_width: int = 0
    below_width: int | None = None
    share: Callable[[Row], float | None] | None = None
    if_any: bool = False
    """Left out if no row has a text in it."""

    def style_of(self, row: Row) -> str:
        return self.style if isinstance(self.style, str) else self.style(row)


def shown_columns(columns: Sequence[Column[Row]], width: int | None, rows: Sequence[Row]) -> list[Column[Row]]:
    """The columns that a list of this width shows; None: of any width."""
    fit = [c for c in columns if width is None or c.from_width <= width < (c.below_width or width + 1)]
    return [c for c in fit if not c.if_any or any(c.text(row) for row in rows)]


def text_rows(columns: Sequence[Column[Row]], rows: Sequence[Row], *, titles: bool = False) -> list[str]:
    """The lines that a verb prints: two blanks between the columns, each as wide as its longest text.

    ``titles``: with a heading. Widths, blanks and styles of the columns are of the screen.
    """
    shown = shown_columns(columns, None, rows)
    cells = [[c.title for c in shown]] if titles else []
    cells += [[c.text(row) for c in shown] for row in rows]
    sizes = [max((len(line[number]) for line in cells), default=0) for number in range(len(shown))]
    return [
        "  ".join(
            text.rjust(size) if c.right else text.ljust(size) for c, text, size in zip(shown, line, sizes, strict=True)
        ).rstrip()
        for line in cells
    ]


# The columns of the lists that verbs print: runs, checkpoints, the queue, other machines, trials.

Kept = tuple[Checkpoint, str]
"""A checkpoint, and what else is known of it."""


def _step(row: Mapping[str, Any]) -> str:
    """``step 136 of 360``, over all attempts and epochs; ``from step 360`` until the newest attempt makes one."""
    step, total = row["step"], row["total_steps"]
    if step is None:
        begins_at = row.get("resume_step")
        return "no step yet" if begins_at is None else f"from step {quantity.count(begins_at)}"
    return f"step {quantity.out_of(step, total)}"


RUNS: tuple[Column[Mapping[str, Any]], ...] = (
    Column(title="run", text=lambda r: str(r["id"])),
    Column(title="state", text=lambda r: STATE_WORDS[r["state"]]),
    Column(title="attempt", text=lambda r: f"attempt {r['attempt']}", right=True),
    Column(title="step", text=_step, right=True),
    Column(title="left", text=lambda r: "" if r.get("eta_s") is None else f"{quantity.duration(r['eta_s'])} left",
           right=True, if_any=True),
    Column(title="watched", text=lambda r: "not watched" if not r["supervisor"]["alive"]
           else "watched" if r["supervisor"]["responsive"] else "FROZEN"),
    # With what is said of a silence, and what needs a person.
    Column(title="folder", text=lambda r: " · ".join(filter(None, (r["cwd"], r.get("still"), r.get("needs_you"))))),
)  # fmt: skip


CHECKPOINTS: tuple[Column[Kept], ...] = (
    Column(title="written", text=lambda r: time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(r[0].mtime))),
    Column(title="size", text=lambda r: quantity.size(r[0].size_bytes), right=True),
    Column(title="name", text=lambda r: r[0].name),
    Column(title="step", right=True, text=lambda r: ", ".join([
        *([] if r[0].step is None else [f"step {quantity.count(r[0].step)}"]),
        *([] if r[0].epoch is None else [f"epoch {r[0].epoch}"]),
    ]) or quantity.UNKNOWN),
    Column(title="verdict", text=lambda r: ": ".join(filter(None, (verdict_word(r[0].verdict), r[0].reason))) + r[1]),
)  # fmt: skip
Queued = tuple[QueueEntry, int | None]
"""An entry, and its place if it waits."""


QUEUE: tuple[Column[Queued], ...] = (
    Column(title="entry", text=lambda r: str(r[0].id), right=True),
    Column(title="run", text=lambda r: r[0].name),
    Column(title="state", text=lambda r: (r[0].ending or r[0].state).replace("_", " ") if r[1] is None
           else f"queued, place {r[1]}"),
    Column(title="GPUs", text=lambda r: f"GPU {','.join(map(str, r[0].on))}" if r[0].on else "", if_any=True),
    Column(title="started as", text=lambda r: ": ".join(filter(None, (r[0].run, r[0].why)))),
)  # fmt: skip
HOSTS: tuple[Column[dict[str, Any]], ...] = (
    Column(title="host", text=lambda r: str(r["name"])),
    Column(title="address", text=lambda r: str(r["ssh"])),
    Column(title="there", text=lambda r: f"trainwatch {r['version']}" if r["version"] else quantity.UNKNOWN),
    Column(title="trouble", text=lambda r: r["trouble"] or ""),
)


TRIALS: tuple[Column[TrialResult], ...] = (
    Column(title="profile", text=lambda r: r.profile),
    Column(title="speed", text=lambda r: "–" if r.s_per_step is None else quantity.pace(r.s_per_step), right=True),
    Column(title="VRAM peak", right=True, text=lambda r: quantity.UNKNOWN if r.vram_peak_bytes is None
           else f"{gib(r.vram_peak_bytes)}{f'/{gib(r.vram_total_bytes)}' if r.vram_total_bytes else ''} GiB"),
    Column(title="RAM peak", text=lambda r: quantity.memory(r.ram_peak_bytes), right=True),
    Column(title="GPU", text=lambda r: quantity.percent(r.gpu_util_pct), right=True),
    Column(title="stable", text=lambda r: {True: "yes", False: "NO", None: "?"}[r.stable]),
    Column(title="ended", text=lambda r: r.exit),
)  # fmt: skip
