"""The host page: processor by core, memory, swap, disks, networks, and the processes of the run."""

from collections.abc import Mapping

import msgspec

from ...model.machine_details import HostDetails, MachineDetails, Traffic, TreeDetails, TreeProcess
from ...model.situation import Situation
from .. import quantity
from ..panes.memory import memory_view
from ..panes.meter import Meter
from ..state.level import ALL_SAFE
from .gauge import LATE, READING, STALE_S, Fact, Gauge, both_ways, command, number, rate

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
