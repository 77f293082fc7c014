"""The host page: processor by core, memory, swap, disks, networks, and the processes of the run."""

import math
from collections.abc import Callable, Iterator, Mapping

import msgspec

from ..model.machine_details import GpuProcess, HostDetails, MachineDetails, Traffic, TreeDetails, TreeProcess
from ..model.progress import Level
from ..model.situation import Situation
from ..model.text import GIB
from . import quantity
from .dashboard import Meter, memory_view
from .state.run_progress import ALL_SAFE, Bounds

# A reading with its chart over time, and a fact: what the GPU page and the host page consist of.

STALE_S = 5.0
"""Age of details in seconds from which they are shown with their age."""


READING = "Reading …"
LATE = "Not known: this run's supervisor does not read it (it may be of an older trainwatch)"


class Gauge(msgspec.Struct, frozen=True, kw_only=True):
    """``text``: the value of now; ``top``, ``bottom``: labels of the ends of its axis.

    ``series``: metric of the history; ``recent``: key of values that only the open page has seen. ``high`` None: the
    largest value; ``high_text`` makes its label.
    """

    title: str
    text: str
    level: Level = "safe"
    series: str | None = None
    recent: str | None = None
    now: float | None = None
    low: float = 0.0
    high: float | None = 100.0
    bounds: Bounds = ALL_SAFE
    unit: str = "%"


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


class TreeRow(msgspec.Struct, frozen=True, kw_only=True):
    """A process of the run, as text."""

    pid: int
    depth: int
    state: str
    user: str
    cpu: str
    ram: str
    threads: str
    read: str
    written: str
    age: str
    command: str
    blocked: bool
    own: bool
    order: tuple[float, float, float]
    """CPU, RAM, bytes a second, to sort by; -1 if unknown."""


class HostPageView(msgspec.Struct, frozen=True, kw_only=True):
    """``message``: why there are no readings. ``cores``: per cent each, None = unknown."""

    gauges: tuple[Gauge, ...] = ()
    facts: tuple[Fact, ...] = ()
    cores: tuple[float | None, ...] = ()
    cores_note: str = ""
    message: str = ""
    note: str = ""
    rows: tuple[TreeRow, ...] = ()
    others: tuple[TreeRow, ...] = ()
    rows_note: str = ""


def host_page_view(now: Situation, details: MachineDetails, *, late: bool = False) -> HostPageView:
    """Project the newest samples and details. Old values are dimmed, unknown ones are ``–``.

    ``late``: details should have come by now.
    """
    memory = memory_view(now)
    host = _fresh(now, details.host)
    tree = details.tree
    gauges = [_of_meter(meter, now, host) for meter in memory.meters]
    if (now.host is not None and now.host.cpu_pct is not None) or host is not None:
        gauges.insert(0, _cpu(now))
    return HostPageView(
        gauges=(*gauges, *_rates(now, host)),
        facts=tuple(_facts(now, host)) if memory.meters else (),
        cores=host.cores_pct if host is not None else (),
        cores_note=_note(now, details.host, late=late),
        message=memory.message or "",
        note=memory.note or "",
        rows=tuple(_row(process, own=True) for process in tree.processes) if tree is not None else (),
        others=tuple(_row(process, own=False) for process in tree.others) if tree is not None else (),
        rows_note=_rows_note(now, tree, late=late),
    )


def _fresh(now: Situation, host: HostDetails | None) -> HostDetails | None:
    return host if host is not None and now.age_s(host.t) <= STALE_S else None


def _note(now: Situation, found: HostDetails | TreeDetails | None, *, late: bool) -> str:
    if found is None:
        if now.supervisor_alive is False:
            return "Not known: no supervisor is running, which reads it"
        return LATE if late else READING
    age_s = now.age_s(found.t)
    return f"{quantity.duration(age_s)} old" if age_s > STALE_S else ""


def _rows_note(now: Situation, tree: TreeDetails | None, *, late: bool) -> str:
    note = _note(now, tree, late=late)
    return note or ("" if tree is not None and tree.processes else "No process of the run is there")


def _cpu(now: Situation) -> Gauge:
    pct = now.host.cpu_pct if now.host is not None else None
    old = now.host is None or now.age_s(now.host.t) > STALE_S
    return Gauge(
        title="CPU of the machine", text=quantity.percent(pct), level="unknown" if pct is None or old else "safe",
        series="host.cpu",
    )  # fmt: skip


def _of_meter(meter: Meter, now: Situation, host: HostDetails | None) -> Gauge:
    text = f"{meter.text} {meter.extra}".strip()
    if meter.label == "cpu" and now.process is not None:
        text = quantity.cores(now.process.cpu_cores, len(host.cores_pct) if host is not None else None)
    return Gauge(
        title=TITLES.get(meter.label, meter.label),
        text=text,
        level=meter.level,
        series=meter.series,
        low=meter.low,
        high=meter.high,
        bounds=meter.bounds,
        unit=UNITS.get(meter.label, ""),
    )


def _rates(now: Situation, host: HostDetails | None) -> list[Gauge]:
    """Disks and networks that moved something, the busiest first; before several of a kind their sum."""
    gauges = []
    for what, known in (("disk", host.disks if host else None), ("network", host.networks if host else None)):
        kept = _kept(now, what)
        if len(known or ()) != 1:
            gauges += [_kept_gauge(f"{what}s {word}", series, value) for word, (series, value) in kept.items()]
        for traffic in sorted(known or (), key=lambda t: -(both_ways(t) or 0.0))[:3]:
            gauges += _of_traffic(what, traffic, kept if len(known or ()) == 1 else {})
    if host is not None:
        gauges.append(
            Gauge(
                title="swap in and out",
                text=f"{rate(host.swap_in)} in, {rate(host.swap_out)} out",
                level="unknown" if host.swap_in is None else "safe",
                recent="swap",
                now=None if host.swap_in is None else host.swap_in + (host.swap_out or 0.0),
                high=None,
                unit="B/s",
            )
        )
    return gauges


def _kept(now: Situation, what: str) -> dict[str, tuple[str, float]]:
    """Sums that the history has, by direction: series and newest value. Nothing if they are unknown or old."""
    host = now.host
    if host is None or now.age_s(host.t) > STALE_S:
        return {}
    found = (
        {"read": ("host.disk_read", host.disk_read), "written": ("host.disk_written", host.disk_written)}
        if what == "disk"
        else {"in": ("host.net_in", host.net_received), "out": ("host.net_out", host.net_sent)}
    )
    return {word: (series, value) for word, (series, value) in found.items() if value is not None}


def _kept_gauge(title: str, series: str, value: float) -> Gauge:
    return Gauge(title=title, text=rate(value), series=series, high=None, bounds=ALL_SAFE, unit="B/s")


def _of_traffic(what: str, traffic: Traffic, kept: Mapping[str, tuple[str, float]]) -> list[Gauge]:
    """``kept``: what the history has of this device."""
    words = ("read", "written") if what == "disk" else ("in", "out")
    busy = f", busy {quantity.percent(traffic.busy_pct)}" if what == "disk" else ""
    return [
        Gauge(
            title=f"{traffic.name} {word}", text=rate(value) + (busy if word == "read" else ""),
            level="unknown" if value is None else "safe", series=kept[word][0] if word in kept else None,
            recent=None if word in kept else f"{what}.{traffic.name}.{word}", now=value, high=None,
            bounds=ALL_SAFE, unit="B/s",
        )
        for word, value in zip(words, (traffic.received, traffic.sent), strict=True)
    ]  # fmt: skip


def _facts(now: Situation, host: HostDetails | None) -> list[Fact]:
    load = None if host is None else host.load
    facts = [
        ("load", quantity.UNKNOWN if load is None else "  ".join(f"{value:.2f}" for value in load)),
        ("CPU temp", number(None if host is None else host.cpu_temp_c, "°C")),
        ("CPU clock", number(None if host is None else host.cpu_mhz, "MHz")),
        ("cached", quantity.memory(None if host is None else host.ram_cached_bytes)),
        ("RAM stalls", _pressure(now)),
        ("OOM kills", quantity.count(None if now.host is None else now.host.oom_kills)),
        ("run's RAM", quantity.memory(None if now.process is None else now.process.rss_bytes)),
        ("processes", quantity.count(None if now.process is None else now.process.procs)),
        ("inodes", _inodes(now)),
        ("up", quantity.duration(None if host is None else host.up_s)),
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


def _pressure(now: Situation) -> str:
    if now.host is None or now.host.psi_memory_pct is None:
        return quantity.UNKNOWN
    return f"{quantity.percent(now.host.psi_memory_pct)} of the time"


def _inodes(now: Situation) -> str:
    if now.host is None or now.host.disk_free_inodes is None:
        return quantity.UNKNOWN
    return f"{quantity.count(now.host.disk_free_inodes)} free"


def _row(process: TreeProcess, *, own: bool) -> TreeRow:
    def known(value: float | None) -> float:
        return -1.0 if value is None else value

    moved = None if process.read is None or process.written is None else process.read + process.written
    return TreeRow(
        pid=process.pid,
        depth=process.depth,
        state=STATES.get(process.state, process.state),
        user=process.user or quantity.UNKNOWN,
        cpu=quantity.percent(process.cpu_pct),
        ram=quantity.memory(process.rss_bytes),
        threads=quantity.count(process.threads),
        read=rate(process.read),
        written=rate(process.written),
        age=quantity.duration(process.age_s),
        command=command(process.command),
        blocked=process.state == "D",
        own=own,
        order=(known(process.cpu_pct), known(process.rss_bytes), known(moved)),
    )


# One process: its readings with their curves over the time that the page was open, and what is known of it.

TEXTS: dict[str, Callable[[float | None], str]] = {"GiB": quantity.memory, "%": quantity.percent, "B/s": rate}
KINDS = {"C": "computes", "G": "draws", "CG": "computes and draws"}
WHOSE = {True: "this run", False: "not this run: it is left alone; kill PID ends it", None: quantity.UNKNOWN}


class Seen(msgspec.Struct, frozen=True):
    """Readings of a process at ``t`` run seconds, by the key of their curve; None = unknown."""

    t: float
    pid: int
    age_s: float | None
    values: tuple[tuple[str, float | None], ...]


class ProcessView(msgspec.Struct, frozen=True, kw_only=True):
    """``facts``: (label, text). ``note``: how old the readings are, or that it is not listed any more."""

    pid: int
    gauges: tuple[Gauge, ...]
    facts: tuple[tuple[str, str], ...]
    command: str
    note: str = ""


def key_of(pid: int, what: str) -> str:
    """The key of a curve; ``key_of(pid, "")`` begins all of a process."""
    return f"process {pid} {what}"


def seen_processes(details: MachineDetails) -> Iterator[Seen]:
    """What the page keeps of each process. CPU and RAM of one in the list of the machine are taken from there."""
    tree = () if details.tree is None else (*details.tree.processes, *details.tree.others)
    listed = {process.pid for process in tree}
    if details.tree is not None:
        for process in tree:
            values = (("cpu", process.cpu_pct), ("ram", process.rss_bytes), ("read", process.read),
                      ("written", process.written))  # fmt: skip
            yield _seen(details.tree.t, process, values)
    if details.gpus is not None:
        for on_gpu in details.gpus.processes or ():
            own = () if on_gpu.pid in listed else (("cpu", on_gpu.cpu_pct), ("ram", on_gpu.rss_bytes))
            here = ((f"memory {on_gpu.gpu}", on_gpu.mem_bytes), (f"time {on_gpu.gpu}", on_gpu.sm_pct))
            yield _seen(details.gpus.t, on_gpu, (*here, *own))


def _seen(t: float, process: GpuProcess | TreeProcess, values: tuple[tuple[str, float | None], ...]) -> Seen:
    return Seen(t, process.pid, process.age_s, tuple((key_of(process.pid, what), value) for what, value in values))


def process_view(now: Situation, details: MachineDetails, pid: int, before: ProcessView | None) -> ProcessView | None:
    """Project what is known of it now. One that is gone keeps the curves of ``before``; None if it was never seen."""
    found = details.gpus.processes or () if details.gpus is not None else ()
    on_gpus = sorted((p for p in found if p.pid == pid), key=lambda p: p.gpu)
    tree = () if details.tree is None else (*details.tree.processes, *details.tree.others)
    listed = next((p for p in tree if p.pid == pid), None)
    if not on_gpus and listed is None:
        return None if before is None else _gone(before)
    times = [each.t for each, there in ((details.gpus, on_gpus), (details.tree, listed)) if each is not None and there]
    age_s = now.age_s(min(times))
    late = age_s > STALE_S
    gauges = (*(g for p in on_gpus for g in _of_gpu(now, p)), *_of_machine(pid, listed, on_gpus))
    own = details.tree is not None and any(p.pid == pid for p in details.tree.processes)
    known = [p.command for p in on_gpus] + ([] if listed is None else [listed.command])
    commands = [words for words in known if words]
    return ProcessView(
        pid=pid,
        gauges=tuple(msgspec.structs.replace(g, level="unknown") for g in gauges) if late else gauges,
        facts=tuple(_process_page_facts(on_gpus, listed, own=own)),
        command=command(max(commands, key=len, default=None)),
        note=f"{quantity.duration(age_s)} old" if late else "",
    )


def _gone(before: ProcessView) -> ProcessView:
    gauges = tuple(msgspec.structs.replace(g, text=quantity.UNKNOWN, level="unknown", now=None) for g in before.gauges)
    return msgspec.structs.replace(before, gauges=gauges, note="ended, or not listed any more")


def _of_gpu(now: Situation, process: GpuProcess) -> Iterator[Gauge]:
    gpus = now.gpu.gpus if now.gpu is not None else ()
    total = next((g.mem_total_bytes for g in gpus if g.index == process.gpu), None)
    yield _gauge(
        f"memory of GPU {process.gpu}", process.mem_bytes,
        key_of(process.pid, f"memory {process.gpu}"), "GiB", high=total,
    )  # fmt: skip
    yield _gauge(
        f"time of GPU {process.gpu}", process.sm_pct,
        key_of(process.pid, f"time {process.gpu}"), "%", high=100.0,
    )  # fmt: skip


def _of_machine(pid: int, listed: TreeProcess | None, on_gpus: list[GpuProcess]) -> Iterator[Gauge]:
    known: TreeProcess | GpuProcess = listed if listed is not None else on_gpus[0]
    cpu, ram = known.cpu_pct, known.rss_bytes
    yield _gauge("CPU", cpu, key_of(pid, "cpu"), "%")
    yield _gauge("RAM", ram, key_of(pid, "ram"), "GiB")
    if listed is not None:
        yield _gauge("read", listed.read, key_of(pid, "read"), "B/s")
        yield _gauge("written", listed.written, key_of(pid, "written"), "B/s")


def _gauge(title: str, value: float | None, key: str, unit: str, high: float | None = None) -> Gauge:
    level: Level = "unknown" if value is None else "safe"
    return Gauge(title=title, text=TEXTS[unit](value), level=level, recent=key, now=value, high=high, unit=unit)


def _process_page_facts(
    on_gpus: list[GpuProcess], listed: TreeProcess | None, *, own: bool
) -> Iterator[tuple[str, str]]:
    first = on_gpus[0] if on_gpus else None
    yield "of", WHOSE[first.own if first is not None else own]
    yield "user", (listed.user if listed is not None else first.user if first is not None else None) or quantity.UNKNOWN
    if first is not None:
        yield "GPU", f"{', '.join(str(p.gpu) for p in on_gpus)}, {KINDS.get(first.kind, first.kind)}"
        if first.mem_util_pct is not None:
            yield "GPU memory", f"{quantity.percent(first.mem_util_pct)} of its bandwidth"
    if listed is not None:
        yield "state", f"{STATES.get(listed.state, listed.state)}, {quantity.plural(listed.threads, 'thread')}"
    yield "age", quantity.duration(listed.age_s if listed is not None else first.age_s if first is not None else None)
