"""The dashboard as one value: what every pane shows."""

import msgspec

from ..model.observation import GpuReading
from ..model.progress import Level
from ..model.run import LIVE_STATES, JobRecord, left_s
from ..model.story import Situation
from ..model.text import GIB
from . import quantity
from .checkpoint_list import CheckpointRow, checkpoint_views
from .incident_list import IncidentView, folded, incident_views
from .run_summary import RunSummary, summarise
from .state.run_progress import ALL_SAFE, Bounds, bounds_now, level_of
from .state.verdict import Verdict
from .timeline import TimelineView, timeline_view
from .words import restarts_left

# The head of the screen: verdict, progress, attempt, budget.

RESUME = {"yes": "Resume: yes", "self": "Resume: by itself", "no": "Resume: NO", "unknown": "Resume: unknown"}
UP_GRAIN_S = 10.0
"""The bar beside it would be written each second during the first two minutes of an attempt."""


class HeaderView(msgspec.Struct, frozen=True, kw_only=True):
    """``done`` 0..1 or None (total unknown). ``facts``: short clauses, the most important first."""

    name: str
    verdict: Verdict
    done: float | None
    facts: tuple[str, ...]


def header_view(now: Situation, name: str = "") -> HeaderView:
    """Project the head. ``name``: used until the journal has one."""
    said = summarise(now, name)
    return HeaderView(name=said.name, verdict=said.sentence, done=said.position.done, facts=_facts(now, said))


def job_fact(job: JobRecord, wall: float) -> str:
    """The job in few words: its number, its state if it does not run, and the time left."""
    left = left_s(job, wall)
    state = "" if job.phase == "running" else f" {job.state or job.phase}"
    why = f" ({job.reason})" if job.reason and job.phase == "queued" else ""
    return f"job {job.handle.id}{state}{why}" + ("" if left is None else f", {quantity.duration(left)} left")


def _facts(now: Situation, said: RunSummary) -> tuple[str, ...]:
    story = now.story
    attempt = story.attempt
    facts: list[str] = []
    live = attempt is not None and attempt.ended_t is None and story.state in LIVE_STATES
    if attempt is not None:
        facts.append(f"attempt {attempt.number}")
        facts += restarts_left(story.state, story.restarts_made, story.budget_max)
    if now.job is not None and live:
        facts.append(job_fact(now.job, now.now_wall))
    if story.act in {"ask", "notify"}:
        facts.append("asks first" if story.act == "ask" else "only notifies")
    if story.profile is not None:
        facts.append(f"{story.profile} next" if story.profile_pending else story.profile)
    if attempt is not None and live and said.seen != "unwatched":
        facts.append(f"up {quantity.duration((now.now_t - attempt.t) // UP_GRAIN_S * UP_GRAIN_S)}")
    if story.run is not None and story.run.resume is not None:
        facts.append(RESUME[story.run.resume.will])
    if attempt is not None and live and attempt.pid is not None:
        facts.append(f"pid {attempt.pid}")
    return tuple(facts)


# One reading with its level: what a row of the GPU and memory panes shows.

STALE_S = 5.0
"""Age in seconds from which readings are shown with their age: a poll has a time limit of 3 s, and one may fail."""


class Meter(msgspec.Struct, frozen=True, kw_only=True):
    """``text`` is the value with its unit; ``extra``: shown if there is room.

    ``series`` names the metric of its sparkline, drawn from ``low`` to ``high`` and coloured by ``bounds``; the level
    of ``text`` is the judge's near a bound. ``whole``: 100 % of the series if ``text`` is in per cent and it is not.
    ``recent``: instead of ``series``, the key of values that only an open page has seen, ``now`` the newest. ``high``
    None: the largest value. ``unit``: of the ends of its axis.
    """

    label: str
    text: str
    level: Level = "safe"
    extra: str = ""
    series: str | None = None
    low: float = 0.0
    high: float | None = 100.0
    bounds: Bounds = ALL_SAFE
    whole: float | None = None
    unit: str = "%"


def old_words(age_s: float) -> str | None:
    """``2 min old``; None while the readings are those of now."""
    return f"{quantity.duration(age_s)} old" if age_s > STALE_S else None


def dimmed(meter: Meter) -> Meter:
    """The same reading as one whose level now is not known."""
    return msgspec.structs.replace(meter, level="unknown")


# What the GPU pane shows: meters of each GPU with their levels, or why there is none.


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
        """In the order of the pane."""
        return (self.util, self.vram, self.temp, self.power)


class GpuPaneView(msgspec.Struct, frozen=True, kw_only=True):
    """``message``: why there are no readings. ``note``: simulated, or the age. ``t``: when it was read, run seconds."""

    gpus: tuple[GpuView, ...] = ()
    t: float = 0.0
    message: str | None = None
    note: str | None = None


def gpu_pane_view(now: Situation) -> GpuPaneView:
    """Project the newest GPU sample."""
    sample = now.gpu
    if sample is None:
        return GpuPaneView(message=_nothing_yet(now))
    note = "SIMULATED" if sample.simulated else None
    old = old_words(now.age_s(sample.t))
    if sample.gpus and old is not None:
        note = old if note is None else f"{note}, {old}"
    if not sample.gpus:
        if sample.trouble:
            return GpuPaneView(message=sample.trouble, note=note)
        return GpuPaneView(message="No NVIDIA GPU seen on this machine", note=note)
    gpus = tuple(gpu_view(now, g, sample.trouble) for g in sample.gpus)
    if old is not None:
        gpus = tuple(
            msgspec.structs.replace(
                g, util=dimmed(g.util), vram=dimmed(g.vram), temp=dimmed(g.temp), power=dimmed(g.power)
            )
            for g in gpus
        )
    if sample.trouble:
        note = sample.trouble if note is None else f"{note}, {sample.trouble}"
    return GpuPaneView(gpus=gpus, t=sample.t, note=note)


def _nothing_yet(now: Situation) -> str:
    if now.supervisor_alive is False:
        return "No reading: no supervisor is running"
    return "No reading yet"


def gpu_view(now: Situation, g: GpuReading, sample_trouble: str | None = None) -> GpuView:
    """Project one GPU. ``sample_trouble``: why none can be read."""
    vram_pct = None
    if g.mem_used_bytes is not None and g.mem_total_bytes:
        vram_pct = 100 * g.mem_used_bytes / g.mem_total_bytes
    prefix, bounds = f"gpu{g.index}", bounds_now(now)
    trouble = g.trouble
    if trouble is None and sample_trouble is None and g.util_pct is None and g.mem_used_bytes is None:
        trouble = "has no readings"
    return GpuView(
        index=g.index,
        name=_short(g.name),
        own=g.own,
        trouble=trouble,
        throttle=", ".join(g.throttle) if g.throttle else None,
        util=Meter(
            label="util",
            text=quantity.percent(g.util_pct),
            level=level_of(now.story, (f"{prefix}.util",), bounds["util"], g.util_pct),
            series=f"{prefix}.util",
            bounds=bounds["util"],
        ),
        vram=Meter(
            label="vram",
            text=quantity.percent(vram_pct) if vram_pct is not None else quantity.memory(g.mem_used_bytes),
            extra=quantity.memory_of(g.mem_used_bytes, g.mem_total_bytes),
            level=level_of(now.story, (f"{prefix}.vram",), bounds["vram"], vram_pct),
            series=f"{prefix}.vram",
            high=g.mem_total_bytes,
            bounds=_scaled(bounds["vram"], g.mem_total_bytes),
            whole=g.mem_total_bytes if vram_pct is not None else None,
        ),
        temp=Meter(
            label="temp",
            text=quantity.UNKNOWN if g.temp_c is None else f"{g.temp_c:.0f} °C",
            level=level_of(now.story, (f"{prefix}.temp",), bounds["temp"], g.temp_c),
            series=f"{prefix}.temp",
            low=20.0,
            bounds=bounds["temp"],
        ),
        power=Meter(
            label="power",
            text=quantity.UNKNOWN if g.power_w is None else f"{g.power_w:.0f} W",
            extra="" if g.power_w is None or not g.power_limit_w else f"of {g.power_limit_w:.0f} W",
            level=level_of(now.story, (f"{prefix}.power",), bounds["power"], g.power_w),
            series=f"{prefix}.power",
            high=g.power_limit_w,
        ),
    )


def _scaled(bounds: Bounds, total_bytes: float | None) -> Bounds:
    """The bounds of VRAM in bytes: its history is kept in bytes, its levels are per cent."""
    if not total_bytes:
        return ALL_SAFE
    return tuple((bound * total_bytes / 100, level) for bound, level in bounds)


def _short(name: str | None) -> str:
    """Without the maker: RTX 4080 for NVIDIA GeForce RTX 4080."""
    if not name:
        return ""
    for word in ("NVIDIA ", "GeForce ", "Graphics Device"):
        name = name.replace(word, "")
    return name.strip()


# The memory pane: RAM, swap, CPU and disk of the machine (or of the cgroup if its limit is lower).


class MemoryView(msgspec.Struct, frozen=True, kw_only=True):
    """``meters`` in order of importance; ``message``: why there are none; ``note``: their age, if they are old."""

    meters: tuple[Meter, ...] = ()
    message: str | None = None
    note: str | None = None


def memory_view(now: Situation) -> MemoryView:
    """Project the newest host and process samples."""
    host = now.host
    if host is None:
        watched = now.supervisor_alive is not False
        return MemoryView(message="No reading yet" if watched else "No reading: no supervisor is running")
    story, bounds = now.story, bounds_now(now)
    used_pct = None
    if host.ram_used_bytes is not None and host.ram_total_bytes:
        used_pct = 100 * host.ram_used_bytes / host.ram_total_bytes
    meters = [
        Meter(
            label="RAM",
            text=quantity.memory_of(host.ram_used_bytes, host.ram_total_bytes),
            level=level_of(story, ("ram_used", "host.ram_used"), bounds["ram_used"], used_pct),
            series="host.ram_used",
            high=host.ram_total_bytes,
            bounds=_memory_scaled(bounds["ram_used"], host.ram_total_bytes),
        ),
        Meter(
            label="avail",
            text=quantity.memory(host.ram_available_bytes),
            level=level_of(
                story, ("ram_available", "host.ram_available"), bounds["ram_available"], host.ram_available_bytes
            ),
            series="host.ram_available",
            high=host.ram_total_bytes,
            bounds=bounds["ram_available"],
        ),
        Meter(
            label="swap",
            text=quantity.memory(host.swap_used_bytes),
            extra=f"of {quantity.memory(host.swap_total_bytes)}" if host.swap_total_bytes else "",
            level=level_of(story, ("swap_used", "host.swap_used"), bounds["swap_used"], host.swap_used_bytes),
            series="host.swap_used",
            high=max(host.swap_total_bytes or 0.0, 2 * GIB),
            bounds=bounds["swap_used"],
        ),
    ]
    process = now.process
    if process is not None and process.cpu_cores is not None:
        procs = "" if process.procs is None else quantity.plural(process.procs, "process", "processes")
        meters.append(
            Meter(
                label="cpu",
                text=quantity.cores(process.cpu_cores),
                extra=procs,
                level="safe",
                series="process.cpu",
                high=None,
            )
        )
    if host.disk_free_bytes is not None:
        meters.append(
            Meter(
                label="disk",
                text=f"{quantity.size(host.disk_free_bytes)} free",
                level=level_of(story, ("disk_free", "host.disk_free"), bounds["disk_free"], host.disk_free_bytes),
                series="host.disk_free",
                high=None,
                bounds=bounds["disk_free"],
            )
        )
    old = old_words(now.age_s(host.t))
    return MemoryView(meters=tuple(meters if old is None else map(dimmed, meters)), note=old)


def _memory_scaled(bounds: Bounds, total: float | None) -> Bounds:
    return tuple((bound * (total or 0.0) / 100, level) for bound, level in bounds) if total else bounds


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
    )
