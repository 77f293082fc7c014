"""The columns of the lists of the GPU page and the host page."""

from .columns import Column
from .gpu_page import GpuCard, ProcessRow
from .host_page import TreeRow
from .ranks_page import RankRow


def _bad(card: GpuCard) -> str:
    return card.slowed_level if card.slowed_level == "danger" else "label"


def _number_style(card: GpuCard) -> str:
    return "accent" if card.view.own else "label"


def _clock_style(card: GpuCard) -> str:
    return "unknown" if card.clock_level == "unknown" else "text"


def _memory(card: GpuCard) -> str:
    return card.gauges[1].text if card.gauges else "–"


GPU_COLUMNS: tuple[Column[GpuCard], ...] = (
    Column(title="", text=lambda c: str(c.index), width=2, right=True, style=_number_style),
    Column(title="GPU", text=lambda c: c.view.name, width=26, fit=True, before=1, style="label", from_width=96),
    Column(title="util", text=lambda c: c.view.util.text, width=6, right=True, style=lambda c: _style(c, "util")),
    Column(title="memory", text=_memory, width=19, right=True, style=lambda c: _style(c, "vram"), from_width=60),
    Column(
        title="memory", text=lambda c: c.view.vram.text, width=7, right=True, style=lambda c: _style(c, "vram"),
        below_width=60,
    ),
    Column(title="temp", text=lambda c: c.view.temp.text, width=7, right=True, style=lambda c: _style(c, "temp")),
    Column(title="power", text=lambda c: c.view.power.text, width=7, right=True, style=lambda c: _style(c, "power")),
    Column(title="SM clock", text=lambda c: c.clock, width=10, right=True, style=_clock_style, from_width=60),
    Column(title="slowed", text=lambda c: c.slowed if c.slowed != "no" else "", before=2, style=_bad, from_width=46),
)  # fmt: skip
"""The list of several GPUs; one with trouble has a sentence instead."""


def _style(card: GpuCard, name: str) -> str:
    level = {"util": card.view.util, "vram": card.view.vram, "temp": card.view.temp, "power": card.view.power}[
        name
    ].level
    return {"safe": "text"}.get(level, level)


def _own(row: ProcessRow) -> str:
    return "accent" if row.own else "label"


PROCESS_COLUMNS: tuple[Column[ProcessRow], ...] = (
    Column(title="GPU", text=lambda p: str(p.gpu), width=3, right=True, style="label"),
    Column(title="pid", text=lambda p: str(p.pid), width=8, right=True, style="text"),
    Column(title="whose", text=lambda p: p.whose, width=5, before=2, style=_own),
    Column(title="user", text=lambda p: p.user, width=12, fit=True, before=1, style="label", from_width=64),
    Column(title="type", text=lambda p: p.kind, width=4, before=1, style="label", from_width=110),
    Column(title="memory", text=lambda p: p.memory, width=10, right=True, style="strong"),
    Column(title="SM", text=lambda p: p.sm, width=6, right=True, style="text", from_width=50),
    Column(title="mem", text=lambda p: p.bandwidth, width=6, right=True, style="text", from_width=110),
    Column(title="CPU", text=lambda p: p.cpu, width=7, right=True, style="text", from_width=84),
    Column(title="RAM", text=lambda p: p.ram, width=10, right=True, style="text", from_width=84),
    Column(title="age", text=lambda p: p.age, width=10, right=True, style="label", from_width=100),
    Column(title="command", text=lambda p: p.command, before=2, style="label"),
)
"""The processes on the GPUs."""
TREE_COLUMNS: tuple[Column[TreeRow], ...] = (
    Column(title="pid", text=lambda p: str(p.pid), width=8, right=True, style=lambda p: "accent" if p.own else "text"),
    Column(title="user", text=lambda p: p.user, width=12, fit=True, before=2, style="label", from_width=90),
    Column(
        title="state", text=lambda p: p.state, width=7, before=2, style=lambda p: "warning" if p.blocked else "label"
    ),
    Column(title="CPU", text=lambda p: p.cpu, width=7, right=True, style="strong"),
    Column(title="RAM", text=lambda p: p.ram, width=9, right=True, style="text"),
    Column(title="threads", text=lambda p: p.threads, width=8, right=True, style="label", from_width=110),
    Column(title="read", text=lambda p: p.read, width=11, right=True, style="text", from_width=74),
    Column(title="written", text=lambda p: p.written, width=11, right=True, style="text", from_width=74),
    Column(title="age", text=lambda p: p.age, width=10, right=True, style="label", from_width=100),
    Column(title="command", text=lambda p: "  " * p.depth + p.command, before=2, style="label"),
)
"""The processes of the run."""


def _rank_style(row: RankRow) -> str:
    return row.level if row.level != "safe" else "text"


RANK_COLUMNS: tuple[Column[RankRow], ...] = (
    Column(title="rank", text=lambda r: str(r.rank), width=4, right=True, style="accent"),
    Column(title="", text=lambda r: r.standing, width=7, before=1, style=_rank_style),
    Column(title="step", text=lambda r: r.step, width=10, right=True, style="strong"),
    Column(title="speed", text=lambda r: r.pace, width=13, right=True, style="text", from_width=37),
    Column(title="last line", text=lambda r: r.age, width=11, right=True, style=_rank_style, from_width=48),
    Column(title="state", text=lambda r: r.state, width=7, before=2, style="label", from_width=57),
    Column(title="node", text=lambda r: r.node, width=20, fit=True, before=2, style="label", if_any=True),
    Column(title="pid", text=lambda r: r.pid, width=8, right=True, style="label", from_width=74),
    Column(title="line", text=lambda r: r.line, before=2, style="label", from_width=90),
)
"""The ranks of a distributed training."""
