"""The pages of the machine: processor, memory, disks, networks, the processes of the run, and each GPU."""

import math
from collections.abc import Callable, Iterator

import msgspec

from ..model.machine_details import (
    GpuDetail,
    GpuDetails,
    GpuProcess,
    HostDetails,
    MachineDetails,
    Traffic,
    TreeDetails,
    TreeProcess,
)
from ..model.observation import GpuReading
from ..model.progress import SLOWED_BY_FAULT, Level
from ..model.story import Situation
from ..model.text import GIB
from ..views import quantity
from .columns import Column
from .dashboard import GpuView, Meter, gpu_pane_view, memory_view, old_words
from .state.run_progress import SEVERITY, worst

# The host page: processor by core, memory, swap, disks, networks, and the processes of the run.


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


# The GPU page: each GPU with gauges and facts, and the processes on them.


NO_DETAIL = GpuDetail(index=0)
replace = msgspec.structs.replace


class GpuCard(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU. ``trouble``: why its readings are missing; ``view``: the same GPU as the dashboard shows it."""

    view: GpuView
    gauges: tuple[Meter, ...]
    facts: tuple[Fact, ...]
    level: Level
    clock: str
    clock_level: Level
    slowed: str
    slowed_level: Level

    @property
    def index(self) -> int:
        return self.view.index


class GpuPageView(msgspec.Struct, frozen=True, kw_only=True):
    """``message``: why there is no GPU. ``note``: simulated, or how old the readings are.

    ``processes_note``: why there are no processes, or how old they are.
    """

    cards: tuple[GpuCard, ...] = ()
    message: str = ""
    note: str = ""
    processes: tuple[GpuProcess, ...] = ()
    processes_note: str = ""
    stale: bool = False
    """The details, processes among them, are not of now."""


def gpu_page_view(now: Situation, details: GpuDetails | None, *, late: bool = False) -> GpuPageView:
    """Project the newest sample and details. Old values are dimmed, unknown ones are ``–``.

    ``late``: details should have come by now.
    """
    pane = gpu_pane_view(now)
    if now.gpu is None or not pane.gpus:
        return GpuPageView(message=pane.message or "", note=pane.note or "")
    age_s = None if details is None else now.age_s(details.t)
    stale = age_s is not None and age_s > STALE_S
    by_index = {detail.index: detail for detail in details.gpus} if details is not None else {}
    versions = tuple(_versions(details))
    cards = tuple(
        _card(now, reading, view, by_index.get(view.index), versions, stale=stale)
        for reading, view in zip(now.gpu.gpus, pane.gpus, strict=True)
    )
    return GpuPageView(
        cards=cards,
        note=pane.note or (f"details {quantity.duration(age_s)} old" if stale else ""),
        stale=stale,
        processes=tuple(details.processes or ()) if details is not None else (),
        processes_note=_processes_note(now, details, age_s, late=late),
    )


def worst_card(cards: tuple[GpuCard, ...]) -> int:
    """Place of the GPU with the worst trouble: those that may be of this run first; 0 if none has any."""
    return max(range(len(cards)), key=lambda at: (*_trouble(cards[at]), -at), default=0)


def _trouble(card: GpuCard) -> tuple[int, int, bool]:
    """``view.own`` None may be a GPU of the run: the driver of one that is lost does not tell."""
    bad = max(SEVERITY[card.level], SEVERITY["warning"] if card.view.trouble else 0)
    if bad < SEVERITY["warning"]:
        return (0, 0, False)
    return (1 if card.view.own is False else 2, bad, card.view.own is True)


def _processes_note(now: Situation, details: GpuDetails | None, age_s: float | None, *, late: bool) -> str:
    if now.gpu is not None and now.gpu.simulated:
        return "The GPU is simulated: it has no processes"
    if details is None or age_s is None:
        if now.supervisor_alive is False:
            return "Not known: no supervisor is running, which reads them"
        return LATE if late else READING
    if age_s > STALE_S:
        return f"{quantity.duration(age_s)} old"
    if details.processes is None:
        return "Not known: the driver does not list processes (as under WSL2)"
    return "" if details.processes else "No process uses a GPU"


def _versions(details: GpuDetails | None) -> list[Fact]:
    found = []
    if details is not None and details.driver:
        cuda = f", CUDA {details.cuda}" if details.cuda else ""
        found.append(Fact(label="driver", text=f"{details.driver}{cuda}"))
    return found


def _card(
    now: Situation,
    reading: GpuReading,
    view: GpuView,
    detail: GpuDetail | None,
    versions: tuple[Fact, ...],
    *,
    stale: bool,
) -> GpuCard:
    facts = [*_gpu_facts(reading, detail or NO_DETAIL), *versions]
    slowed, slowed_level = _slowed(reading)
    old = now.gpu is None or old_words(now.age_s(now.gpu.t)) is not None
    meters: tuple[Level, ...] = tuple(m.level for m in view.meters if m.level != "unknown")
    known: Level = "danger" if view.trouble and view.own is not False else "unknown" if view.trouble or old else "safe"
    bad = (fact.level for fact in facts if fact.level in {"warning", "danger"})
    level = worst((known, *meters, slowed_level, *bad)) if not old else "unknown"
    if stale or old:
        facts = [replace(fact, level="unknown") for fact in facts]
    return GpuCard(
        view=view,
        gauges=() if view.trouble else tuple(_gauges(reading, view, detail or NO_DETAIL, stale=stale, old=old)),
        facts=() if view.trouble else tuple(facts),
        level=level,
        clock=number(reading.clock_mhz, "MHz"),
        clock_level="unknown" if old or reading.clock_mhz is None else "safe",
        slowed=slowed,
        slowed_level="unknown" if old else slowed_level,
    )


def _slowed(reading: GpuReading) -> tuple[str, Level]:
    """Why its clocks are reduced, and how bad that is: a power cap is usual, a fault of the hardware is not."""
    if reading.throttle is None:
        return quantity.UNKNOWN, "unknown"
    if not reading.throttle:
        return "no", "safe"
    return ", ".join(reading.throttle), "danger" if SLOWED_BY_FAULT & set(reading.throttle) else "safe"


def _gauges(reading: GpuReading, view: GpuView, detail: GpuDetail, *, stale: bool, old: bool) -> Iterator[Meter]:
    """What the history has. ``stale``: the details are ``old``: the sample is."""
    name, memory = f"gpu{view.index}", quantity.memory_of(reading.mem_used_bytes, reading.mem_total_bytes)
    yield replace(view.util, label="utilisation")
    yield replace(view.vram, label="memory", text=memory, unit="GiB")
    yield replace(view.power, text=" ".join(filter(None, (view.power.text, view.power.extra))), unit="W")
    yield replace(view.temp, label="temperature", high=max(100.0, detail.slowdown_c or 0.0), unit="°C")
    clock = detail.clock_sm_mhz if detail.clock_sm_mhz is not None else reading.clock_mhz
    of = f" of {detail.clock_sm_max_mhz:,.0f}" if detail.clock_sm_max_mhz else ""
    yield Meter(
        label="SM clock", text=quantity.UNKNOWN if clock is None else f"{clock:,.0f}{of} MHz",
        level="unknown" if clock is None or old else "safe", series=f"{name}.clock", high=detail.clock_sm_max_mhz,
        unit="MHz",
    )  # fmt: skip
    for label, key, read, told in (
        ("fan", "fan", reading.fan_pct, detail.fan_pct),
        ("PCIe in", "pcie_in", reading.pcie_received, detail.pcie_received),
        ("PCIe out", "pcie_out", reading.pcie_sent, detail.pcie_sent),
    ):
        value, percent = told if read is None else read, key == "fan"
        if value is not None:
            yield Meter(
                label=label, text=quantity.percent(value) if percent else rate(value),
                level="unknown" if old or (stale and read is None) else "safe", series=f"{name}.{key}",
                high=100.0 if percent else None, unit="%" if percent else "B/s",
            )  # fmt: skip


def _gpu_facts(reading: GpuReading, detail: GpuDetail) -> list[Fact]:
    slowed, slowed_level = _slowed(reading)
    facts = [
        Fact(label="slowed", text=slowed, level=slowed_level),
        Fact(label="limit", text=_limits(detail), level="unknown" if detail.slowdown_c is None else "safe"),
        _fact("mem temp", number(detail.mem_temp_c, "°C")),
        _fact("mem clock", _of(detail.clock_mem_mhz, detail.clock_mem_max_mhz, "MHz")),
        _fact("mem busy", quantity.percent(detail.mem_util_pct)),
        _fact("fan", quantity.percent(detail.fan_pct)),
        _fact("PCIe", _link(detail)),
        _ecc(detail),
        _rows(detail),
        _fact("state", quantity.UNKNOWN if detail.pstate is None else f"P{detail.pstate}"),
        _fact("video", _video(detail)),
        _fact("MIG", whether(detail.mig)),
        _fact("compute", detail.compute_mode or quantity.UNKNOWN),
        _fact("persists", whether(detail.persistence)),
        _fact("own memory", quantity.memory(reading.own_mem_bytes)),
        _fact("bus", reading.pci or quantity.UNKNOWN),
    ]
    return [fact for fact in facts if fact is not None]


def _fact(label: str, text: str) -> Fact:
    return Fact(label=label, text=text, level="unknown" if text == quantity.UNKNOWN else "safe")


def _limits(detail: GpuDetail) -> str:
    if detail.slowdown_c is None:
        return quantity.UNKNOWN
    off = f", off {detail.shutdown_c:.0f} °C" if detail.shutdown_c is not None else ""
    return f"slows {detail.slowdown_c:.0f} °C{off}"


def _of(value: float | None, most: float | None, unit: str) -> str:
    if value is None:
        return quantity.UNKNOWN
    return f"{value:,.0f} of {most:,.0f} {unit}" if most else f"{value:,.0f} {unit}"


def _link(detail: GpuDetail) -> str:
    if detail.pcie_generation is None or detail.pcie_width is None:
        return quantity.UNKNOWN
    best = ""
    if detail.pcie_generation_max is not None and detail.pcie_width_max is not None:
        most = (detail.pcie_generation_max, detail.pcie_width_max)
        if most != (detail.pcie_generation, detail.pcie_width):
            best = f" (can {detail.pcie_generation_max} x{detail.pcie_width_max})"
    return f"gen {detail.pcie_generation} x{detail.pcie_width}{best}"


def _ecc(detail: GpuDetail) -> Fact:
    if detail.ecc is None:
        return Fact(label="ECC", text=quantity.UNKNOWN, level="unknown")
    if not detail.ecc:
        return Fact(label="ECC", text="off")
    bad, good = detail.ecc_uncorrected, detail.ecc_corrected
    text = f"{quantity.count(bad)} uncorrected, {quantity.count(good)} corrected"
    return Fact(label="ECC", text=text, level="danger" if bad else "safe")


def _rows(detail: GpuDetail) -> Fact | None:
    if detail.rows_remapped is None and detail.rows_pending is None:
        return None
    waits = ", more after a reset" if detail.rows_pending else ""
    return Fact(
        label="bad rows",
        text=f"{quantity.count(detail.rows_remapped)} replaced{waits}",
        level="warning" if detail.rows_pending else "safe",
    )


def _video(detail: GpuDetail) -> str:
    if detail.encoder_pct is None and detail.decoder_pct is None:
        return quantity.UNKNOWN
    return f"encodes {quantity.percent(detail.encoder_pct)}, decodes {quantity.percent(detail.decoder_pct)}"


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


PROCESS_COLUMNS: tuple[Column[GpuProcess], ...] = (
    Column(title="GPU", text=lambda p: str(p.gpu), width=3, right=True, style="label"),
    Column(title="pid", text=lambda p: str(p.pid), width=8, right=True),
    Column(title="whose", text=lambda p: whether(p.own, "own", "other"), width=5, before=2,
           style=lambda p: "accent" if p.own else "label"),
    Column(title="user", text=lambda p: p.user or "–", width=12, fit=True, before=1, style="label", from_width=64),
    Column(title="type", text=lambda p: p.kind, width=4, before=1, style="label", from_width=110),
    Column(title="memory", text=lambda p: quantity.memory(p.mem_bytes), width=10, right=True, style="strong"),
    Column(title="SM", text=lambda p: quantity.percent(p.sm_pct), width=6, right=True, from_width=50),
    Column(title="mem", text=lambda p: quantity.percent(p.mem_util_pct), width=6, right=True, from_width=110),
    Column(title="CPU", text=lambda p: quantity.percent(p.cpu_pct), width=7, right=True, from_width=84),
    Column(title="RAM", text=lambda p: quantity.memory(p.rss_bytes), width=10, right=True, from_width=84),
    Column(title="age", text=lambda p: quantity.duration(p.age_s), width=10, right=True, style="label",
           from_width=100),
    Column(title="command", text=lambda p: command(p.command), before=2, style="label"),
)  # fmt: skip
"""The processes on the GPUs. ``whose`` is "–" if the driver's pids are of another namespace."""
PROCESS_SORTS: dict[str, Callable[[GpuProcess], float | None]] = {
    "memory": lambda p: p.mem_bytes,
    "GPU time": lambda p: p.sm_pct,
    "CPU": lambda p: p.cpu_pct,
    "RAM": lambda p: p.rss_bytes,
    "GPU": lambda p: -p.gpu,
}
"""By what processes are sorted, most first; the last one: by the number of the GPU."""


def most_first(value: float | None) -> float:
    """To sort by: what is unknown comes last."""
    return 1.0 if value is None else -value
