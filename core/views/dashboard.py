"""The dashboard as one value: what every pane shows."""

from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from ..model.observation import GpuReading, ProcessSample
from ..model.progress import Level, Metric
from ..model.run import LIVE_STATES, JobRecord, left_s
from ..model.story import Situation
from ..model.text import GIB
from . import quantity
from .checkpoint_list import CheckpointRow, checkpoint_views
from .incidents import IncidentCard, IncidentView, folded, incident_card, incident_views
from .run_summary import summarise
from .state.run_progress import ALL_SAFE, bounds_now, level_of
from .state.verdict import Verdict
from .timeline import TimelineView, timeline_view
from .words import restarts_left

# The head of the screen: verdict, progress, attempt, budget.

RESUME = {"yes": "Resume: yes", "self": "Resume: by itself", "no": "Resume: NO", "unknown": "Resume: unknown"}
HELD = "after a crash nothing follows by itself once it has saved"
"""What follows in a run that cannot be resumed."""


class HeaderView(msgspec.Struct, frozen=True, kw_only=True):
    """``done`` 0..1 or None (total unknown). ``facts``: short clauses, the most important first."""

    name: str
    verdict: Verdict
    done: float | None
    facts: tuple[str, ...]


def header_view(now: Situation, name: str = "") -> HeaderView:
    """Project the head. ``name``: used until the journal has one."""
    said = summarise(now, name)
    return HeaderView(name=said.name, verdict=said.sentence, done=said.position.done, facts=_facts(now))


def job_fact(job: JobRecord, wall: float) -> str:
    """The job in few words: its number, its state if it does not run, and the time left."""
    left = left_s(job, wall)
    state = "" if job.phase == "running" else f" {job.state or job.phase}"
    why = f" ({job.reason})" if job.reason and job.phase == "queued" else ""
    return f"job {job.handle.id}{state}{why}" + ("" if left is None else f", {quantity.duration(left)} left")


def _facts(now: Situation) -> tuple[str, ...]:
    story, attempt, facts = now.story, now.story.attempt, list[str]()
    will = None if story.run is None or story.run.resume is None else story.run.resume.will
    if attempt is not None:
        facts.append(f"attempt {attempt.number}")
        facts += restarts_left(story.state, story.restarts_made, story.budget_max, will)
    if now.job is not None and attempt is not None and attempt.ended_t is None and story.state in LIVE_STATES:
        facts.append(job_fact(now.job, now.now_wall))
    if story.act in {"ask", "notify"}:
        facts.append("asks first" if story.act == "ask" else "only notifies")
    if story.profile is not None:
        facts.append(f"{story.profile} next" if story.profile_pending else story.profile)
    if will is not None:
        facts.append(RESUME[will])
    if will == "no" and story.state in LIVE_STATES and story.act not in {"ask", "notify"}:
        facts.append(HELD)
    return tuple(facts)


# One reading with its level: what a row of the GPU and memory panes shows.

STALE_S = 5.0
"""Age in seconds from which readings are shown with their age: a poll has a time limit of 3 s, and one may fail."""


class Meter(msgspec.Struct, frozen=True, kw_only=True):
    """``text`` is the value with its unit; ``extra``: shown if there is room.

    ``series`` names the metric of its sparkline, drawn from ``low`` to ``high`` and coloured by ``bounds``; the level
    of ``text`` is the judge's near a bound. ``whole``: 100 % of the series if ``text`` is in per cent and it is not.
    ``high`` None: the largest value.
    """

    label: str
    text: str
    level: Level = "safe"
    extra: str = ""
    series: str | None = None
    low: float = 0.0
    high: float | None = 100.0
    bounds: Metric = ALL_SAFE
    whole: float | None = None


def old_words(age_s: float) -> str:
    """``2 min old``; empty while the readings are those of now."""
    return f"{quantity.duration(age_s)} old" if age_s > STALE_S else ""


def dimmed(meters: Iterable[Meter]) -> tuple[Meter, ...]:
    """The same readings as some whose level now is not known."""
    return tuple(msgspec.structs.replace(meter, level="unknown") for meter in meters)


def _meter(
    now: Situation, source: str, row: str, value: float | None, text: str, *, of: float | None = None, **more: Any
) -> Meter:
    """A reading with its level. ``value``: in the unit of its bounds.

    ``of``: 100 % of a history that is in bytes while its bounds are in per cent; 0 = unknown.
    """
    series, bounds = f"{source}.{row}", bounds_now(now)[row]
    level = level_of(now.story, (row, series), bounds, value)
    if of is not None:
        warning, danger, spare = (x * of / 100 for x in (bounds.warning, bounds.danger, bounds.underused or 0.0))
        bounds = Metric(bounds.unit, warning, danger, underused=spare) if of else ALL_SAFE
    return Meter(text=text, level=level, series=series, bounds=bounds, **{"label": row, **more})


def nothing_read(now: Situation) -> str:
    """Why there is no reading."""
    return "No reading: no supervisor is running" if now.supervisor_alive is False else "No reading yet"


# What the GPU pane shows: meters of each GPU with their levels, or why there is none.


METERS = ("util", "vram", "temp", "power")


class GpuView(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU. ``trouble``: why its readings are missing or old."""

    index: int
    name: str
    util: Meter
    vram: Meter
    temp: Meter
    power: Meter
    own: bool | None = None
    trouble: str | None = None
    throttle: str | None = None

    @property
    def meters(self) -> tuple[Meter, ...]:
        """In the order of METERS."""
        return (self.util, self.vram, self.temp, self.power)


class GpuPaneView(msgspec.Struct, frozen=True, kw_only=True):
    """``message``: why there are no readings. ``note``: simulated, or the age. ``t``: when it was read, run seconds."""

    gpus: tuple[GpuView, ...] = ()
    t: float = 0.0
    message: str = ""
    note: str = ""


def gpu_pane_view(now: Situation) -> GpuPaneView:
    """Project the newest GPU sample."""
    sample = now.gpu
    if sample is None:
        return GpuPaneView(message=nothing_read(now))
    simulated = "SIMULATED" if sample.simulated else ""
    if not sample.gpus:
        return GpuPaneView(message=sample.trouble or "No NVIDIA GPU seen on this machine", note=simulated)
    gpus = tuple(gpu_view(now, g, sample.trouble) for g in sample.gpus)
    old = old_words(now.age_s(sample.t))
    if old:
        gpus = tuple(msgspec.structs.replace(g, **dict(zip(METERS, dimmed(g.meters), strict=True))) for g in gpus)
    return GpuPaneView(gpus=gpus, t=sample.t, note=", ".join(filter(None, (simulated, old, sample.trouble))))


def gpu_view(now: Situation, g: GpuReading, sample_trouble: str | None = None) -> GpuView:
    """Project one GPU. ``sample_trouble``: why none can be read."""
    total, source, trouble, name = g.mem_total_bytes, f"gpu{g.index}", g.trouble, g.name or ""
    vram_pct = quantity.share_pct(g.mem_used_bytes, total)
    if trouble is None and sample_trouble is None and g.util_pct is None and g.mem_used_bytes is None:
        trouble = "has no readings"
    for word in ("NVIDIA ", "GeForce ", "Graphics Device"):
        name = name.replace(word, "")
    power = quantity.UNKNOWN if g.power_w is None else f"{g.power_w:.0f} W"
    temp = quantity.UNKNOWN if g.temp_c is None else f"{g.temp_c:.0f} °C"
    return GpuView(
        index=g.index,
        name=name.strip(),
        own=g.own,
        trouble=trouble,
        throttle=", ".join(g.throttle) if g.throttle else None,
        util=_meter(now, source, "util", g.util_pct, quantity.percent(g.util_pct)),
        vram=_meter(
            now, source, "vram", vram_pct,
            quantity.memory(g.mem_used_bytes) if vram_pct is None else quantity.percent(vram_pct),
            extra=quantity.memory_of(g.mem_used_bytes, total), high=total, of=total or 0.0,
            whole=None if vram_pct is None else total,
        ),
        temp=_meter(now, source, "temp", g.temp_c, temp, low=20.0),
        power=_meter(
            now, source, "power", g.power_w, power, high=g.power_limit_w,
            extra="" if g.power_w is None or not g.power_limit_w else f"of {g.power_limit_w:.0f} W",
        ),
    )  # fmt: skip


# The memory pane: RAM, swap, CPU and disk of the machine (or of the cgroup if its limit is lower).


class MemoryView(msgspec.Struct, frozen=True, kw_only=True):
    """``meters`` in order of importance; ``message``: why there are none; ``note``: their age, if they are old."""

    meters: tuple[Meter, ...] = ()
    message: str = ""
    note: str = ""


def processes_at(now: Situation, t: float) -> Literal["there", "ended", "unknown"]:
    """What is known now of processes of the run that were seen at ``t``; unknown: they were of an earlier attempt.

    What is left of an attempt after its end is seen later than that, again and again.
    """
    attempt = now.story.attempt
    if attempt is None or (attempt.ended_t is None and t >= attempt.t):
        return "there"
    if attempt.ended_t is None:
        return "unknown"
    return "ended" if t <= attempt.ended_t or now.age_s(t) > STALE_S else "there"


def process_now(now: Situation) -> ProcessSample | None:
    """The newest reading of the run's processes, if they are there."""
    process = now.process
    return process if process is not None and processes_at(now, process.t) == "there" else None


def memory_view(now: Situation) -> MemoryView:
    """Project the newest host and process samples."""
    host, process = now.host, now.process
    if host is None:
        return MemoryView(message=nothing_read(now))
    total, swap, free = host.ram_total_bytes, host.swap_total_bytes, host.disk_free_bytes
    meters = [
        _meter(
            now, "host", "ram_used", quantity.share_pct(host.ram_used_bytes, total),
            quantity.memory_of(host.ram_used_bytes, total), label="RAM", high=total, of=total or 0.0,
        ),
        _meter(
            now, "host", "ram_available", host.ram_available_bytes, quantity.memory(host.ram_available_bytes),
            label="avail", high=total,
        ),
        _meter(
            now, "host", "swap_used", host.swap_used_bytes, quantity.memory(host.swap_used_bytes), label="swap",
            extra=f"of {quantity.memory(swap)}" if swap else "", high=max(swap or 0.0, 2 * GIB),
        ),
    ]  # fmt: skip
    if process is not None and process.cpu_cores is not None:
        procs = "" if process.procs is None else quantity.plural(process.procs, "process", "processes")
        cpu = Meter(label="cpu", text=quantity.cores(process.cpu_cores), extra=procs, series="process.cpu", high=None)
        if process_now(now) is None:
            none = "no process" if processes_at(now, process.t) == "ended" else ""
            cpu = msgspec.structs.replace(cpu, text=quantity.UNKNOWN, extra=none, level="unknown")
        elif age := old_words(now.age_s(process.t)):
            cpu = msgspec.structs.replace(cpu, extra=age, level="unknown")
        meters.append(cpu)
    if free is not None:
        meters.append(_meter(now, "host", "disk_free", free, f"{quantity.size(free)} free", label="disk", high=None))
    old = old_words(now.age_s(host.t))
    return MemoryView(meters=dimmed(meters) if old else tuple(meters), note=old)


class DashboardView(msgspec.Struct, frozen=True, kw_only=True):
    """What each pane of the dashboard shows, from one situation."""

    header: HeaderView
    gpu: GpuPaneView
    memory: MemoryView
    timeline: TimelineView
    checkpoints: tuple[CheckpointRow, ...]
    incidents: tuple[IncidentView, ...]
    """Equal ones are one."""
    incident_count: int = 0
    card: IncidentCard | None = None
    """Of the newest incident."""


def dashboard_view(now: Situation, name: str = "") -> DashboardView:
    """Project a situation. ``name``: used until the journal has one."""
    incidents = incident_views(now)
    return DashboardView(
        header=header_view(now, name),
        gpu=gpu_pane_view(now),
        memory=memory_view(now),
        timeline=timeline_view(now),
        checkpoints=checkpoint_views(now),
        incidents=folded(incidents),
        incident_count=len(incidents),
        card=incident_card(now, incidents[0].id) if incidents else None,
    )
