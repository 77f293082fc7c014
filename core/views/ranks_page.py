"""The page of ranks and nodes: a row for each rank, a row of GPUs for each node, and the job."""

from collections.abc import Iterator, Mapping, Sequence
from statistics import median

import msgspec

from ..model.observation import GpuReading, Nodes, RankNow, RankTable, Standing
from ..model.progress import Level
from ..model.run import JobRecord, left_s
from ..model.story import Situation
from ..views import quantity
from .columns import Column, level_style
from .dashboard import gpu_view
from .machine_page import STATES
from .state.run_progress import worst

OLD_S = 60.0
"""A rank that was seen so long ago is not known any more: nodes write every ten seconds."""
ROUGH_S = 10.0
"""Ages of lines of ranks that are like the others are told in such steps: a node tells them as often, and hundreds of
ages that count seconds are most of what a terminal far away would get."""
MIXED = "lines of single ranks not known"
"""Of ranks that print into one file without their numbers (torchrun without ``--log-dir`` and ``--tee``)."""
LEVELS: dict[Standing, Level] = {
    "stopped": "danger",
    "ended": "danger",
    "silent": "danger",
    "behind": "warning",
    "slowest": "warning",
}


class GpuCell(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU of a node: its utilisation in per cent, and the worst of its levels."""

    text: str
    level: Level


class NodeRow(msgspec.Struct, frozen=True, kw_only=True):
    """One node. ``note``: since when it is silent, or how many of its GPUs cannot be read."""

    name: str
    cells: tuple[GpuCell, ...]
    note: str
    level: Level
    silent: bool = False


class RanksPageView(msgspec.Struct, frozen=True, kw_only=True):
    """``title``, ``note``: of the list of ``ranks``, with ages as of now. ``job``: its state, reason and time left."""

    ranks: tuple[RankNow, ...] = ()
    title: str = "ranks"
    note: str = ""
    message: str = ""
    nodes: tuple[NodeRow, ...] = ()
    nodes_title: str = "nodes"
    job: str = ""


def ranks_page_view(now: Situation, table: RankTable) -> RanksPageView:
    """Project the newest table."""
    age_s = None if table.t is None else max(0.0, now.now_t - table.t)
    aged = tuple(
        msgspec.structs.replace(
            row, seen_age_s=row.seen_age_s + (age_s or 0.0),
            last_line_age_s=None if row.last_line_age_s is None else row.last_line_age_s + (age_s or 0.0),
        )
        for row in table.ranks
    )  # fmt: skip
    ranks = sorted(aged, key=lambda row: (ORDER.index(row.standing) if row.standing else len(ORDER), row.rank))
    nodes = () if table.nodes is None else tuple(_nodes(now, table.nodes))
    old = bool(ranks) and all(row.seen_age_s > OLD_S for row in ranks)
    mixed = bool(ranks) and not any(map(_is_told_apart, ranks))
    return RanksPageView(
        ranks=tuple(ranks),
        title=" · ".join(filter(None, (quantity.plural(len(ranks), "rank"), _worst_of(ranks)))) if ranks else "ranks",
        note=f"{quantity.duration(age_s)} old" if old else MIXED if mixed else "",
        message=_nothing(now),
        nodes=nodes,
        nodes_title=_nodes_title(nodes),
        job=job_words(now.job, now.now_wall),
    )


def job_words(job: JobRecord | None, wall: float) -> str:
    """The job in one clause: state, reason, nodes, time left; "" if the run is none."""
    if job is None:
        return ""
    state = "RUNNING" if job.phase == "running" else job.state or job.phase.upper()
    why = f" ({job.reason})" if job.reason and job.phase in {"queued", "unknown"} else ""
    at = f" on {job.nodes}" if job.nodes and job.phase != "queued" else ""
    left = left_s(job, wall)
    limit = "" if left is None else f" · {quantity.duration(left)} left"
    return f"job {job.handle.id} {state}{why}{at}{limit}"


def _worst_of(ranks: list[RankNow]) -> str:
    """The worst kind of rank apart, with its numbers: the title names a silent one."""
    first = ranks[0].standing if ranks else None
    found = [str(row.rank) for row in ranks if first is not None and row.standing == first]
    return f"rank{'s' * (len(found) > 1)} {_first_of(found, 4)} {first}" if found else ""


def _first_of(names: list[str], most: int) -> str:
    """``node1, node2, node3 and 5 more``."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _is_told_apart(row: RankNow) -> bool:
    """Whether anything is known of it by which it could be like the others."""
    return row.standing is not None or row.step is not None or row.last_line_age_s is not None


def rank_level(row: RankNow) -> Level:
    """Unknown if its node writes no more, no supervisor reads, or its lines are not known."""
    if row.seen_age_s > OLD_S or not _is_told_apart(row):
        return "unknown"
    return "safe" if row.standing is None else LEVELS[row.standing]


def _line_age(row: RankNow) -> str:
    age_s = row.last_line_age_s
    if age_s is None or row.standing is not None:
        return quantity.duration(age_s)
    return f"< {ROUGH_S:.0f} s" if age_s < ROUGH_S else quantity.duration(age_s // ROUGH_S * ROUGH_S)


def _nothing(now: Situation) -> str:
    if now.supervisor_alive is False:
        return "No ranks are known: no supervisor is running"
    if now.job is not None and now.job.phase == "queued":
        return "No ranks yet: its job waits in the queue"
    return "No ranks are known: fewer than two processes have a rank"


def _nodes(now: Situation, nodes: Nodes) -> Iterator[NodeRow]:
    """GPUs are numbered over all nodes, as the judge counts them."""
    first = 0
    for node in nodes.nodes:
        silent_s, gpus = nodes.silent_s(node, now.now_t), node.gpus or ()
        cells = tuple(
            _cell(now, msgspec.structs.replace(gpu, index=first + at), silent=silent_s is not None)
            for at, gpu in enumerate(gpus)
        )
        first += len(gpus)
        note = "its GPUs cannot be read" if node.gpus is None else ""
        level = worst(tuple(cell.level for cell in cells))
        if silent_s is not None:
            note, level = f"silent for {quantity.duration(silent_s)}", "warning"
        yield NodeRow(name=node.node, cells=cells, note=note, level=level, silent=silent_s is not None)


def _cell(now: Situation, gpu: GpuReading, *, silent: bool) -> GpuCell:
    if silent:
        return GpuCell(text=quantity.UNKNOWN, level="unknown")
    view = gpu_view(now, gpu)
    if view.trouble:
        return GpuCell(text=quantity.UNKNOWN, level="danger")
    level = worst(tuple(meter.level for meter in view.meters if meter.level != "unknown") or ("unknown",))
    return GpuCell(text=quantity.UNKNOWN if gpu.util_pct is None else f"{gpu.util_pct:.0f}", level=level)


def _nodes_title(rows: tuple[NodeRow, ...]) -> str:
    if not rows:
        return "nodes"
    gpus, silent = sum(len(row.cells) for row in rows), [row.name for row in rows if row.silent]
    told = f"{_first_of(silent, 3)} silent" if silent else ""
    return " · ".join(filter(None, (quantity.plural(len(rows), "node"), quantity.plural(gpus, "GPU"), told)))


NO_GPU = GpuCell(text="", level="safe")


def node_columns(rows: Sequence[NodeRow], signs: Mapping[str, str]) -> tuple[Column[NodeRow], ...]:
    """The nodes of a job: each GPU with the sign of its level (``signs``) and its utilisation in per cent."""

    def gpu(at: int) -> Column[NodeRow]:
        def cell(row: NodeRow) -> GpuCell:
            return row.cells[at] if at < len(row.cells) else NO_GPU

        return Column(
            title=f"gpu{at}", width=5, right=True, after=1,
            text=lambda row: f"{signs[cell(row).level]}{cell(row).text:>4}" if at < len(row.cells) else "",
            style=lambda row: level_style(cell(row).level),
        )  # fmt: skip

    return (
        Column(title="node", text=lambda row: row.name, width=20, fit=True, after=2),
        *(gpu(at) for at in range(max((len(row.cells) for row in rows), default=0))),
        Column(title="", text=lambda row: row.note, style=lambda row: "danger" if row.level == "danger" else "label"),
    )


def _rank_style(row: RankNow) -> str:
    return level_style(rank_level(row))


RANK_COLUMNS: tuple[Column[RankNow], ...] = (
    Column(title="rank", text=lambda r: str(r.rank), width=4, right=True, style="accent"),
    Column(title="", text=lambda r: r.standing or "", width=7, before=1, style=_rank_style),
    Column(title="step", text=lambda r: quantity.count(r.step), width=10, right=True, style="strong"),
    Column(title="speed", text=lambda r: quantity.UNKNOWN if r.sec_per_step is None else quantity.pace(r.sec_per_step),
           width=13, right=True, style="text", from_width=37),
    Column(title="last line", text=_line_age, width=11, right=True, style=_rank_style, from_width=48),
    Column(title="state", text=lambda r: STATES.get(r.state, r.state) if r.state else quantity.UNKNOWN, width=7,
           before=2, style="label", from_width=57),
    Column(title="node", text=lambda r: r.node or "", width=20, fit=True, before=2, style="label", if_any=True),
    Column(title="pid", text=lambda r: quantity.UNKNOWN if r.pid is None else str(r.pid), width=8, right=True,
           style="label", from_width=74),
    Column(title="line", text=lambda r: r.last_line or "", before=2, style="label", from_width=90),
)  # fmt: skip
"""The ranks of a distributed training."""


# Which ranks of a distributed training are apart from the others: stopped, silent, behind, slowest.


APART_S = 10.0
"""A rank is silent if its newest line is so much older than the newest of all ranks, and behind if its step is so much
behind at the usual pace. Why: lines are read at different moments, and wait in buffers."""
STEPS_APART = 2.0
"""A rank is behind by at least so many steps, however long a step takes."""
SLOWER = 1.1
"""x the median seconds per step, above which a rank is the slowest; ranks of one step differ by less."""
PACE_WINDOW_S = 60.0
"""Time between the two lines from which a pace is computed. One step more or less in it makes no rank the slowest."""
ORDER: tuple[Standing, ...] = tuple(LEVELS)


def with_standing(rows: Sequence[RankNow]) -> tuple[RankNow, ...]:
    """Each rank with the way in which it differs from the others. None if that is not known, or is so of all ranks."""
    if len(rows) < 2:
        return tuple(rows)
    found: dict[int, Standing] = {}
    paces = {row.rank: row.sec_per_step for row in rows if row.sec_per_step}
    for standing, numbers in (
        ("slowest", _slowest(paces)),
        ("behind", _behind(rows, paces)),
        ("silent", _silent(rows, paces)),
        ("ended", {row.rank for row in rows if row.state in {"Z", "X"}}),
        ("stopped", {row.rank for row in rows if row.state in {"T", "t"}}),
    ):
        if len(numbers) < len(rows) or standing in {"stopped", "ended"}:
            found.update(dict.fromkeys(numbers, standing))  # type: ignore[arg-type]
    return tuple(msgspec.structs.replace(row, standing=found.get(row.rank)) for row in rows)


def _slowest(paces: Mapping[int, float]) -> set[int]:
    if len(paces) < 2:
        return set()
    usual, most = median(paces.values()), max(paces.values())
    enough = usual * (SLOWER + 2.0 * usual / PACE_WINDOW_S)
    return {rank for rank, pace in paces.items() if pace == most} if most > enough else set()


def _behind(rows: Sequence[RankNow], paces: Mapping[int, float]) -> set[int]:
    """Compares where each rank would be now at the usual pace: those of other nodes were read at another time."""
    if not paces:
        return set()
    pace = median(paces.values())
    there = {row.rank: row.step + row.seen_age_s / pace for row in rows if row.step is not None}
    first, apart = max(there.values(), default=0.0), max(STEPS_APART, APART_S / pace)
    return {rank for rank, step in there.items() if first - step >= apart}


def _silent(rows: Sequence[RankNow], paces: Mapping[int, float]) -> set[int]:
    ages = {row.rank: row.last_line_age_s - row.seen_age_s for row in rows if row.last_line_age_s is not None}
    newest = min(ages.values(), default=0.0)
    return {rank for rank, age in ages.items() if age - newest > max(APART_S, STEPS_APART * paces.get(rank, 0.0))}
