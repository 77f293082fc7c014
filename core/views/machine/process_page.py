"""One process: its readings with their curves over the time that the page was open, and what is known of it."""

from collections.abc import Callable, Iterator

import msgspec

from ...model.health import Level
from ...model.machine_details import GpuProcess, MachineDetails, TreeProcess
from ...model.situation import Situation
from .. import quantity
from .gauge import STALE_S, Gauge, command, rate
from .host_page import STATES

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
        facts=tuple(_facts(on_gpus, listed, own=own)),
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


def _facts(on_gpus: list[GpuProcess], listed: TreeProcess | None, *, own: bool) -> Iterator[tuple[str, str]]:
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
