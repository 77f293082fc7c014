"""The host page: processor by core, memory, swap, disks, networks, and the processes of the run."""

import math
from collections.abc import Callable, Iterator

import msgspec

from ..model.machine_details import HostDetails, MachineDetails, Traffic, TreeDetails, TreeProcess
from ..model.progress import Level
from ..model.situation import Situation
from ..model.text import GIB
from . import quantity
from .columns import Column
from .dashboard import Meter, memory_view

# Facts, and the ends of the axes of charts: what the GPU page and the host page consist of.

STALE_S = 5.0
"""Age of details in seconds from which they are shown with their age."""


READING = "Reading …"
LATE = "Not known: this run's supervisor does not read it (it may be of an older trainwatch)"


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """A value without a chart. ``level`` colours it."""

    label: str
    text: str
    level: Level = "safe"


def axis_label(value: float, unit: str) -> str:
    """The end of an axis in at most 8 cells: 100 %, 16 GiB, 450 W, 3,105, 1.2 GB/s."""
    if unit == "GiB":
        return f"{_short(value / GIB)} GiB"
    if unit in {"B", "B/s"}:
        for factor, name in quantity.SIZE_UNITS:
            if abs(value) >= factor * 0.9995:
                return f"{_short(value / factor)} {name}{unit[1:]}"
        return f"{value:.0f} {unit}"
    shown = f"{value:,.0f}" if unit == "MHz" else f"{_short(value)} {unit}"
    return shown.strip()


def round_up(value: float) -> float:
    """The next of 1, 2, 5, 10 … : the end of an axis that does not move with every value."""
    if value <= 0 or not math.isfinite(value):
        return 0.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= value)


def _short(value: float) -> str:
    """Two digits: 0.02, 0.5, 1.2, 16, 450."""
    if abs(value) >= 9.95 or value == round(value):
        return f"{value:.0f}"
    return f"{value:.1f}" if abs(value) >= 0.1 else f"{value:.1g}"


def rate(bytes_per_s: float | None) -> str:
    """8.60 MB/s, 0 B/s; ``–`` if unknown."""
    if bytes_per_s is None or not math.isfinite(bytes_per_s):
        return quantity.UNKNOWN
    return f"{quantity.size(bytes_per_s)}/s"


def both_ways(traffic: Traffic) -> float | None:
    """Sum of the two directions; None if one is unknown."""
    if traffic.received is None or traffic.sent is None:
        return None
    return traffic.received + traffic.sent


def command(words: str | None) -> str:
    """A command with the name of its program instead of the program's path; ``–`` if unknown."""
    if not words:
        return quantity.UNKNOWN
    program, _, rest = words.partition(" ")
    return f"{program.rpartition('/')[2] if program.startswith('/') else program} {rest}".strip()


def number(value: float | None, unit: str) -> str:
    """2,706 MHz; ``–`` if unknown."""
    return quantity.UNKNOWN if value is None else f"{value:,.0f} {unit}"


def whether(value: bool | None, yes: str = "on", no: str = "off") -> str:
    """on, off, or ``–`` if unknown."""
    return quantity.UNKNOWN if value is None else yes if value else no


STATES = {
    "R": "runs", "S": "sleeps", "D": "blocked", "T": "stopped", "t": "traced", "Z": "ended", "X": "ended", "I": "idle",
}  # fmt: skip
"""State letters of proc(5). D waits for a disk, a network mount or a driver, and cannot be ended."""
UNITS = {"RAM": "GiB", "avail": "GiB", "swap": "GiB", "cpu": "", "disk": "B"}
TITLES = {"RAM": "RAM", "avail": "RAM available", "swap": "swap", "cpu": "CPU of the run", "disk": "disk of the run"}


class HostPageView(msgspec.Struct, frozen=True, kw_only=True):
    """``message``: why there are no readings."""

    gauges: tuple[Meter, ...] = ()
    facts: tuple[Fact, ...] = ()
    message: str = ""
    note: str = ""
    rows: tuple[TreeProcess, ...] = ()
    others: tuple[TreeProcess, ...] = ()
    rows_note: str = ""


def host_page_view(now: Situation, details: MachineDetails, *, late: bool = False) -> HostPageView:
    """Project the newest samples and details. Old values are dimmed, unknown ones are ``–``.

    ``late``: details should have come by now.
    """
    memory = memory_view(now)
    host = _fresh(now, details.host)
    tree = details.tree
    gauges = [_gauge_of(meter, now, host) for meter in memory.meters]
    if (now.host is not None and now.host.cpu_pct is not None) or host is not None:
        pct = now.host.cpu_pct if now.host is not None else None
        old = now.host is None or now.age_s(now.host.t) > STALE_S
        level: Level = "unknown" if pct is None or old else "safe"
        gauges.insert(0, Meter(label="CPU of the machine", text=quantity.percent(pct), level=level, series="host.cpu"))
    return HostPageView(
        gauges=(*gauges, *_rates(now)),
        facts=tuple(_facts(now, host)) if memory.meters else (),
        message=memory.message or "",
        note=memory.note or "",
        rows=tree.processes if tree is not None else (),
        others=tree.others if tree is not None else (),
        rows_note=_rows_note(now, tree, late=late),
    )


def _fresh(now: Situation, host: HostDetails | None) -> HostDetails | None:
    return host if host is not None and now.age_s(host.t) <= STALE_S else None


def _rows_note(now: Situation, tree: TreeDetails | None, *, late: bool) -> str:
    if tree is None:
        if now.supervisor_alive is False:
            return "Not known: no supervisor is running, which reads it"
        return LATE if late else READING
    age_s = now.age_s(tree.t)
    if age_s > STALE_S:
        return f"{quantity.duration(age_s)} old"
    return "" if tree.processes else "No process of the run is there"


def _gauge_of(meter: Meter, now: Situation, host: HostDetails | None) -> Meter:
    text = f"{meter.text} {meter.extra}".strip()
    if meter.label == "cpu" and now.process is not None:
        text = quantity.cores(now.process.cpu_cores, len(host.cores_pct) if host is not None else None)
    label, unit = TITLES.get(meter.label, meter.label), UNITS.get(meter.label, "")
    return msgspec.structs.replace(meter, label=label, text=text, unit=unit)


def _rates(now: Situation) -> list[Meter]:
    """The sums over all disks and networks that the history has. None if they are unknown or old."""
    host = now.host
    if host is None or now.age_s(host.t) > STALE_S:
        return []
    sums = (
        ("disks read", "host.disk_read", host.disk_read), ("disks written", "host.disk_written", host.disk_written),
        ("network in", "host.net_in", host.net_received), ("network out", "host.net_out", host.net_sent),
    )  # fmt: skip
    return [
        Meter(label=label, text=rate(value), series=series, high=None, unit="B/s")
        for label, series, value in sums
        if value is not None
    ]


def _devices(host: HostDetails) -> Iterator[tuple[str, str]]:
    """Disks and networks, the busiest first, and what is swapped."""
    for disk in sorted(host.disks or (), key=lambda t: -(both_ways(t) or 0.0))[:3]:
        busy = f", busy {quantity.percent(disk.busy_pct)}"
        yield disk.name, f"{rate(disk.received)} read, {rate(disk.sent)} written{busy}"
    for network in sorted(host.networks or (), key=lambda t: -(both_ways(t) or 0.0))[:3]:
        yield network.name, f"{rate(network.received)} in, {rate(network.sent)} out"
    yield "swapping", f"{rate(host.swap_in)} in, {rate(host.swap_out)} out"


def _facts(now: Situation, host: HostDetails | None) -> list[Fact]:
    load = None if host is None else host.load
    facts = [
        ("load", quantity.UNKNOWN if load is None else "  ".join(f"{value:.2f}" for value in load)),
        ("cores", _cores(host)),
        ("CPU temp", number(None if host is None else host.cpu_temp_c, "°C")),
        ("CPU clock", number(None if host is None else host.cpu_mhz, "MHz")),
        ("cached", quantity.memory(None if host is None else host.ram_cached_bytes)),
        ("RAM stalls", _pressure(now)),
        ("OOM kills", quantity.count(None if now.host is None else now.host.oom_kills)),
        ("run's RAM", quantity.memory(None if now.process is None else now.process.rss_bytes)),
        ("processes", quantity.count(None if now.process is None else now.process.procs)),
        ("inodes", _inodes(now)),
        ("up", quantity.duration(None if host is None else host.up_s)),
        *(_devices(host) if host is not None else ()),
        *(
            (mount.path, f"{quantity.size(mount.free)} free of {quantity.size(mount.total)}")
            for mount in (host.mounts if host is not None else ())
        ),
    ]
    old = now.host is None or now.now_t - now.host.t > STALE_S
    return [
        Fact(label=name, text=text, level="unknown" if old or text == quantity.UNKNOWN else "safe")
        for name, text in facts
    ]


def _cores(host: HostDetails | None) -> str:
    known = [each for each in host.cores_pct if each is not None] if host is not None else []
    return f"{len(host.cores_pct)}, the busiest {max(known):.0f} %" if host is not None and known else quantity.UNKNOWN


def _pressure(now: Situation) -> str:
    if now.host is None or now.host.psi_memory_pct is None:
        return quantity.UNKNOWN
    return f"{quantity.percent(now.host.psi_memory_pct)} of the time"


def _inodes(now: Situation) -> str:
    if now.host is None or now.host.disk_free_inodes is None:
        return quantity.UNKNOWN
    return f"{quantity.count(now.host.disk_free_inodes)} free"


TREE_COLUMNS: tuple[Column[TreeProcess], ...] = (
    Column(title="pid", text=lambda p: str(p.pid), width=8, right=True),
    Column(title="user", text=lambda p: p.user or "–", width=12, fit=True, before=2, style="label", from_width=90),
    Column(title="state", text=lambda p: STATES.get(p.state, p.state), width=7, before=2,
           style=lambda p: "warning" if p.state == "D" else "label"),
    Column(title="CPU", text=lambda p: quantity.percent(p.cpu_pct), width=7, right=True, style="strong"),
    Column(title="RAM", text=lambda p: quantity.memory(p.rss_bytes), width=9, right=True),
    Column(title="threads", text=lambda p: quantity.count(p.threads), width=8, right=True, style="label",
           from_width=110),
    Column(title="read", text=lambda p: rate(p.read), width=11, right=True, from_width=74),
    Column(title="written", text=lambda p: rate(p.written), width=11, right=True, from_width=74),
    Column(title="age", text=lambda p: quantity.duration(p.age_s), width=10, right=True, style="label",
           from_width=100),
    Column(title="command", text=lambda p: "  " * p.depth + command(p.command), before=2, style="label"),
)  # fmt: skip
"""The processes of the run."""
TREE_SORTS: dict[str, Callable[[TreeProcess], float | None]] = {
    "tree": lambda _: None,
    "CPU": lambda p: p.cpu_pct,
    "RAM": lambda p: p.rss_bytes,
    "bytes": lambda p: None if p.read is None or p.written is None else p.read + p.written,
}
"""How processes are sorted: below their parents, or most first."""
