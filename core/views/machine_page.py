"""The pages of the machine: processor, memory, disks, networks, the processes of the run, and each GPU."""

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
from ..model.observation import GpuReading, HostSample, ProcessSample
from ..model.progress import SLOWED_BY_FAULT, Level
from ..model.story import Situation
from ..views import quantity
from .columns import Column, level_style
from .dashboard import STALE_S, GpuView, Meter, gpu_pane_view, memory_view, old_words, process_now, processes_at
from .metrics import CORES, RATE, axis_unit, value_text, words_of
from .state.run_progress import SEVERITY, worst
from .words import Paragraph

# Facts, and the ends of the axes of charts: what the GPU page and the host page consist of.


replace = msgspec.structs.replace
READING = "Reading …"
LATE = "Not known: this run's supervisor does not read it (it may be of an older trainwatch)"


def axis_ends(series: str, low: float, high: float) -> tuple[str, str]:
    """The upper and the lower end of an axis, in at most 8 cells each: 100 %, 16 GiB, 450 W, 3,105 MHz, 1.2 GB/s."""
    factor, word = axis_unit(words_of(series).unit, low, high)
    word = "" if word == CORES else word
    upper, lower = (f"{_short(value / factor)} {word}".strip() for value in (high, low))
    return upper, lower


def _short(value: float) -> str:
    """Two digits: 0.02, 0.5, 1.2, 16, 450."""
    if abs(value) >= 9.95 or value == round(value):
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 0.1 else f"{value:.1g}"


def rate(bytes_per_s: float | None) -> str:
    """8.60 MB/s, 0 B/s; ``–`` if unknown."""
    return value_text(bytes_per_s, RATE)


def command(words: str | None) -> str:
    """A command with the name of its program instead of the program's path; ``–`` if unknown."""
    if not words:
        return quantity.UNKNOWN
    program, _, rest = words.partition(" ")
    return f"{program.rpartition('/')[2] if program.startswith('/') else program} {rest}".strip()


def number(value: float | None, unit: str, most: float | None = None) -> str:
    """2,706 MHz, 2,706 of 3,105 MHz; ``–`` if unknown."""
    of = f" of {most:,.0f}" if most else ""
    return quantity.UNKNOWN if value is None else f"{value:,.0f}{of} {unit}"


def whether(value: bool | None, yes: str = "on", no: str = "off") -> str:
    """on, off, or ``–`` if unknown."""
    return quantity.UNKNOWN if value is None else yes if value else no


STATES = {
    "R": "runs", "S": "sleeps", "D": "blocked", "T": "stopped", "t": "traced", "Z": "ended", "X": "ended", "I": "idle",
}  # fmt: skip
"""State letters of proc(5). D waits for a disk, a network mount or a driver, and cannot be ended."""
TITLES = {"RAM": "RAM", "avail": "RAM available", "swap": "swap", "cpu": "CPU of the run", "disk": "disk of the run"}


class HostPageView(msgspec.Struct, frozen=True, kw_only=True):
    """``message``: why there are no readings."""

    gauges: tuple[Meter, ...] = ()
    facts: tuple[Paragraph, ...] = ()
    message: str = ""
    note: str = ""
    rows: tuple[TreeProcess, ...] = ()
    others: tuple[TreeProcess, ...] = ()
    rows_note: str = ""


def host_page_view(now: Situation, details: MachineDetails, *, late: bool = False) -> HostPageView:
    """Project the newest samples and details. Old values are dimmed, unknown ones are ``–``.

    ``late``: details should have come by now.
    """
    memory, tree, sample = memory_view(now), details.tree, now.host
    host = details.host if details.host is not None and now.age_s(details.host.t) <= STALE_S else None
    old = sample is None or now.age_s(sample.t) > STALE_S
    gauges = [_gauge_of(meter, now, host) for meter in memory.meters]
    pct = None if sample is None else sample.cpu_pct
    if pct is not None or host is not None:
        level: Level = "unknown" if pct is None or old else "safe"
        gauges.insert(0, Meter(label="CPU of the machine", text=quantity.percent(pct), level=level, series="host.cpu"))
    if sample is not None and not old:  # the sums over all disks and networks that the history has
        gauges += [
            Meter(label=words_of(series).title, text=rate(value), series=series, high=None)
            for series, value in (
                ("host.disk_read", sample.disk_read), ("host.disk_written", sample.disk_written),
                ("host.net_in", sample.net_received), ("host.net_out", sample.net_sent),
            )
            if value is not None
        ]  # fmt: skip
    known = "unknown" if tree is None else processes_at(now, tree.t)
    tree = None if known == "unknown" else tree
    rows, note = tree.processes if tree is not None and known == "there" else (), _why_none(now, tree, "it", late=late)
    if tree is not None and not rows:
        note = " · ".join(filter(None, ("No process of the run is there", note)))
    return HostPageView(
        gauges=tuple(gauges),
        facts=tuple(_facts(now, host, old=old)) if memory.meters else (),
        message=memory.message,
        note=memory.note,
        rows=rows,
        others=tree.others if tree is not None else (),
        rows_note=note,
    )


def _why_none(now: Situation, seen: TreeDetails | GpuDetails | None, them: str, *, late: bool) -> str:
    """Why details are not known, or how old they are; empty if they are of now."""
    if seen is not None:
        return old_words(now.age_s(seen.t))
    if now.supervisor_alive is False:
        return f"Not known: no supervisor is running, which reads {them}"
    return LATE if late else READING


def _gauge_of(meter: Meter, now: Situation, host: HostDetails | None) -> Meter:
    text = f"{meter.text} {meter.extra}".strip()
    if meter.label == "cpu" and (process := process_now(now)) is not None:
        text = quantity.cores(process.cpu_cores, len(host.cores_pct) if host is not None else None)
    return replace(meter, label=TITLES.get(meter.label, meter.label), text=text)


def _devices(host: HostDetails) -> Iterator[tuple[str, str]]:
    """Disks and networks, the busiest first, what is swapped, and file systems."""

    def idle(traffic: Traffic) -> float:
        known = traffic.received is not None and traffic.sent is not None
        return -((traffic.received or 0.0) + (traffic.sent or 0.0)) if known else 0.0

    for disk in sorted(host.disks or (), key=idle)[:3]:
        busy = f", busy {quantity.percent(disk.busy_pct)}"
        yield disk.name, f"{rate(disk.received)} read, {rate(disk.sent)} written{busy}"
    for network in sorted(host.networks or (), key=idle)[:3]:
        yield network.name, f"{rate(network.received)} in, {rate(network.sent)} out"
    yield "swapping", f"{rate(host.swap_in)} in, {rate(host.swap_out)} out"
    for mount in host.mounts:
        yield mount.path, f"{quantity.size(mount.free)} free of {quantity.size(mount.total)}"


def _facts(now: Situation, known: HostDetails | None, *, old: bool) -> Iterator[Paragraph]:
    host, sample = known or HostDetails(t=0.0), now.host or HostSample(t=0.0)
    process, stalled = process_now(now) or ProcessSample(t=0.0), sample.psi_memory_pct
    busiest = max((each for each in host.cores_pct if each is not None), default=None)
    facts = (
        ("load", "  ".join(f"{value:.2f}" for value in host.load or ())),
        ("cores", "" if busiest is None else f"{len(host.cores_pct)}, the busiest {busiest:.0f} %"),
        ("CPU temp", number(host.cpu_temp_c, "°C")),
        ("CPU clock", number(host.cpu_mhz, "MHz")),
        ("cached", quantity.memory(host.ram_cached_bytes)),
        ("RAM stalls", "" if stalled is None else f"{quantity.percent(stalled)} of the time"),
        ("OOM kills", quantity.count(sample.oom_kills)),
        ("run's RAM", quantity.memory(process.rss_bytes)),
        ("processes", quantity.count(process.procs)),
        ("inodes", "" if sample.disk_free_inodes is None else f"{quantity.count(sample.disk_free_inodes)} free"),
        ("up", quantity.duration(host.up_s)),
        *(_devices(host) if known is not None else ()),
    )
    return (_fact(name, text, "unknown" if old else "safe") for name, text in facts)


READ: Column[TreeProcess] = Column(title="read", text=lambda p: rate(p.read), width=11, right=True, from_width=74)
WRITTEN: Column[TreeProcess] = replace(READ, title="written", text=lambda p: rate(p.written))
TREE_COLUMNS: tuple[Column[TreeProcess], ...] = (
    Column(title="pid", text=lambda p: str(p.pid), width=8, right=True),
    Column(title="user", text=lambda p: p.user or "–", width=12, fit=True, before=2, style="label", from_width=90),
    Column(title="state", text=lambda p: STATES.get(p.state, p.state), width=7, before=2,
           style=lambda p: "warning" if p.state == "D" else "label"),
    Column(title="CPU", text=lambda p: quantity.percent(p.cpu_pct), width=7, right=True, style="strong"),
    Column(title="RAM", text=lambda p: quantity.memory(p.rss_bytes), width=9, right=True),
    Column(title="threads", text=lambda p: quantity.count(p.threads), width=8, right=True, style="label",
           from_width=110),
    READ,
    WRITTEN,
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


class GpuCard(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU. ``trouble``: why its readings are missing; ``view``: the same GPU as the dashboard shows it."""

    view: GpuView
    gauges: tuple[Meter, ...]
    facts: tuple[Paragraph, ...]
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
    pane, seen = gpu_pane_view(now), details or GpuDetails(t=now.now_t)
    if now.gpu is None or not pane.gpus:
        return GpuPageView(message=pane.message, note=pane.note)
    old = old_words(now.age_s(seen.t))
    note = _why_none(now, details, "them", late=late)
    if now.gpu.simulated:
        note = "The GPU is simulated: it has no processes"
    elif not note and seen.processes is None:
        note = "Not known: the driver does not list processes (as under WSL2)"
    return GpuPageView(
        cards=tuple(
            _card(now, reading, view, seen, stale=bool(old))
            for reading, view in zip(now.gpu.gpus, pane.gpus, strict=True)
        ),
        note=pane.note or (f"details {old}" if old else ""),
        stale=bool(old),
        processes=tuple(seen.processes or ()),
        processes_note=note if note or seen.processes else "No process uses a GPU",
    )


def gpus_title(cards: tuple[GpuCard, ...]) -> str:
    """``8 GPUs · RTX 4080 · 1 in trouble``: their name, if all have the same."""
    names, bad = {card.view.name for card in cards if card.view.name}, sum(card.level == "danger" for card in cards)
    title = f"{len(cards)} GPUs{f' · {names.pop()}' if len(names) == 1 else ''}"
    return f"{title} · {bad} in trouble" if bad else title


def worst_card(cards: tuple[GpuCard, ...]) -> int:
    """Place of the GPU with the worst trouble: those that may be of this run first; 0 if none has any."""
    return max(range(len(cards)), key=lambda at: (*_trouble(cards[at]), -at), default=0)


def _trouble(card: GpuCard) -> tuple[int, int, bool]:
    """``view.own`` None may be a GPU of the run: the driver of one that is lost does not tell."""
    bad = max(SEVERITY[card.level], SEVERITY["warning"] if card.view.trouble else 0)
    if bad < SEVERITY["warning"]:
        return (0, 0, False)
    return (1 if card.view.own is False else 2, bad, card.view.own is True)


def _card(now: Situation, reading: GpuReading, view: GpuView, seen: GpuDetails, *, stale: bool) -> GpuCard:
    detail = next((each for each in seen.gpus if each.index == view.index), NO_DETAIL)
    slowed, slowed_level = _slowed(reading)
    cuda = f", CUDA {seen.cuda}" if seen.cuda else ""
    versions = [Paragraph(f"{seen.driver}{cuda}", "driver")] if seen.driver else []
    facts = [_fact("slowed", slowed, slowed_level), *_gpu_facts(reading, detail), *versions]
    old = now.gpu is None or now.age_s(now.gpu.t) > STALE_S
    known: Level = "danger" if view.trouble and view.own is not False else "unknown" if view.trouble or old else "safe"
    bad = [fact.level for fact in facts if fact.level is not None]
    read = [meter.level for meter in view.meters if meter.level != "unknown"]
    if stale or old:
        facts = [replace(fact, style="unknown", level=None) for fact in facts]
    return GpuCard(
        view=view,
        gauges=() if view.trouble else tuple(_gauges(reading, view, detail, stale=stale, old=old)),
        facts=() if view.trouble else tuple(facts),
        level="unknown" if old else worst((known, *read, slowed_level, *bad)),
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
    name = f"gpu{view.index}"
    yield replace(view.util, label="utilisation")
    yield replace(view.vram, label="memory", text=view.vram.extra)
    yield replace(view.power, text=" ".join(filter(None, (view.power.text, view.power.extra))))
    yield replace(view.temp, label="temperature", high=max(100.0, detail.slowdown_c or 0.0))
    clock = detail.clock_sm_mhz if detail.clock_sm_mhz is not None else reading.clock_mhz
    yield Meter(
        label="SM clock", text=number(clock, "MHz", detail.clock_sm_max_mhz), series=f"{name}.clock",
        level="unknown" if clock is None or old else "safe", high=detail.clock_sm_max_mhz,
    )  # fmt: skip
    for label, key, read, told, high in (
        ("fan", "fan", reading.fan_pct, detail.fan_pct, 100.0),
        ("PCIe in", "pcie_in", reading.pcie_received, detail.pcie_received, None),
        ("PCIe out", "pcie_out", reading.pcie_sent, detail.pcie_sent, None),
    ):
        value = told if read is None else read
        if value is not None:
            yield Meter(
                label=label, text=rate(value) if high is None else quantity.percent(value), series=f"{name}.{key}",
                level="unknown" if old or (stale and read is None) else "safe", high=high,
            )  # fmt: skip


def _gpu_facts(reading: GpuReading, detail: GpuDetail) -> Iterator[Paragraph]:
    off = "" if detail.shutdown_c is None else f", off {detail.shutdown_c:.0f} °C"
    yield _fact("limit", "" if detail.slowdown_c is None else f"slows {detail.slowdown_c:.0f} °C{off}")
    yield _fact("mem temp", number(detail.mem_temp_c, "°C"))
    yield _fact("mem clock", number(detail.clock_mem_mhz, "MHz", detail.clock_mem_max_mhz))
    yield _fact("mem busy", quantity.percent(detail.mem_util_pct))
    yield _fact("fan", quantity.percent(detail.fan_pct))
    link, best = (detail.pcie_generation, detail.pcie_width), (detail.pcie_generation_max, detail.pcie_width_max)
    can = "" if None in best or best == link else f" (can {best[0]} x{best[1]})"
    yield _fact("PCIe", "" if None in link else f"gen {link[0]} x{link[1]}{can}")
    errors = f"{quantity.count(detail.ecc_uncorrected)} uncorrected, {quantity.count(detail.ecc_corrected)} corrected"
    lost: Level = "danger" if detail.ecc and detail.ecc_uncorrected else "safe"
    yield _fact("ECC", "" if detail.ecc is None else errors if detail.ecc else "off", lost)
    if detail.rows_remapped is not None or detail.rows_pending is not None:
        waits = ", more after a reset" if detail.rows_pending else ""
        text = f"{quantity.count(detail.rows_remapped)} replaced{waits}"
        yield _fact("bad rows", text, "warning" if detail.rows_pending else "safe")
    yield _fact("own memory", quantity.memory(reading.own_mem_bytes))
    yield _fact("bus", reading.pci or "")


def _fact(label: str, text: str, level: Level = "safe") -> Paragraph:
    """A value without a chart, with the sign of a ``level`` that is bad. ``text`` empty: it is not known."""
    text = text or quantity.UNKNOWN
    level = level if text != quantity.UNKNOWN else "unknown"
    bad = level in {"warning", "danger"}
    return Paragraph(text, label, level_style(level), level=level if bad else None)


def _style(name: str) -> Callable[[GpuCard], str]:
    """That of one of its readings."""
    return lambda card: level_style(getattr(card.view, name).level)


GPU_COLUMNS: tuple[Column[GpuCard], ...] = (
    Column(title="", text=lambda c: str(c.index), width=2, right=True,
           style=lambda c: "accent" if c.view.own else "label"),
    Column(title="GPU", text=lambda c: c.view.name, width=26, fit=True, before=1, style="label", from_width=96),
    Column(title="util", text=lambda c: c.view.util.text, width=6, right=True, style=_style("util")),
    Column(title="memory", text=lambda c: c.gauges[1].text if c.gauges else "–", width=19, right=True,
           style=_style("vram"), from_width=60),
    Column(title="memory", text=lambda c: c.view.vram.text, width=7, right=True, style=_style("vram"), below_width=60),
    Column(title="temp", text=lambda c: c.view.temp.text, width=7, right=True, style=_style("temp")),
    Column(title="power", text=lambda c: c.view.power.text, width=7, right=True, style=_style("power")),
    Column(title="SM clock", text=lambda c: c.clock, width=10, right=True, from_width=60,
           style=lambda c: "unknown" if c.clock_level == "unknown" else "text"),
    Column(title="slowed", text=lambda c: c.slowed if c.slowed != "no" else "", before=2, from_width=46,
           style=lambda c: c.slowed_level if c.slowed_level == "danger" else "label"),
)  # fmt: skip
"""The list of several GPUs; one with trouble has a sentence instead."""


WHOSE: Column[GpuProcess] = Column(
    title="whose", text=lambda p: whether(p.own, "own", "other"), width=5, before=2,
    style=lambda p: "accent" if p.own else "label",
)  # fmt: skip
PROCESS_COLUMNS: tuple[Column[GpuProcess], ...] = (
    Column(title="GPU", text=lambda p: str(p.gpu), width=3, right=True, style="label"),
    Column(title="pid", text=lambda p: str(p.pid), width=8, right=True),
    WHOSE,
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
