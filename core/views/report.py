"""The report of a run: what happened, what it cost, and what the user has to decide.

The texts of a Report hold no secrets, so every form of it can be sent to others.
``report_building.py`` makes one, ``report_pages.py`` writes it.
"""

from collections.abc import Callable, Mapping
from datetime import datetime

import msgspec

from ..model.decision import Record
from ..model.run import EndedBy, RunSpec
from ..model.story import Need
from . import quantity
from .state.lost_time import LostTime
from .words import STATE_WORDS


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """What was read while the run trained: means, and the highest temperature and swap; None = no reading.

    ``alone_s``: its longest time without a crash or hang.
    """

    util_pct: float | None = None
    vram_pct: float | None = None
    ram_pct: float | None = None
    temp_c: float | None = None
    swap_bytes: float | None = None
    alone_s: float | None = None


TARGETS: tuple[tuple[str, str, str, Callable[[float], str], Callable[[float], bool]], ...] = (
    ("GPU utilisation", "util_pct", "> 95 %", "{:.0f} %".format, lambda v: v > 95.0),
    ("GPU memory", "vram_pct", "90–98 %", "{:.0f} %".format, lambda v: 90.0 <= v <= 98.0),
    ("RAM", "ram_pct", "60–70 %", "{:.0f} %".format, lambda v: 60.0 <= v <= 70.0),
    ("hottest GPU", "temp_c", "< 80 °C", "{:.0f} °C".format, lambda v: v < 80.0),
    ("most swap", "swap_bytes", f"< {quantity.memory(1e9)}", quantity.memory, lambda v: v < 1e9),
    ("longest without a crash", "alone_s", "8 h 00 m", quantity.duration, lambda v: v >= 8 * 3600.0),
)
"""What, the reading of ``Usage``, the target, a value in words, and whether it is met.

Source: docs/sources.md, SDXL LoRA on 16 GB of VRAM: the machine is used well and keeps a margin for a night of 8 to
12 hours. A run on another machine may miss some of them for good reasons; nothing follows from it.
"""


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """One row. ``met``: whether the value is within the target."""

    what: str
    value: str
    target: str
    met: bool


def targets(usage: Usage) -> tuple[Target, ...]:
    """The targets that there is a reading for; none for a run without a GPU."""
    if usage.util_pct is None and usage.vram_pct is None:
        return ()
    return tuple(
        Target(what=what, value=words(value), target=target, met=met(value))
        for what, name, target, words, met in TARGETS
        if (value := getattr(usage, name)) is not None
    )


DATE = "%Y-%m-%d %H:%M"


class LossCourse(msgspec.Struct, frozen=True, kw_only=True):
    """Of the whole run, from the metric history; None = never printed."""

    first: float | None = None
    last: float | None = None
    lowest: float | None = None


class MetricCourse(msgspec.Struct, frozen=True, kw_only=True):
    """A number that the trainer logs by name, over the whole run."""

    name: str
    first: float
    last: float
    lowest: float
    highest: float


class ReportSources(msgspec.Struct, frozen=True, kw_only=True):
    """The input of a report besides the situation.

    ``log_ends``: attempt → the last lines of its log. ``log_steps``: attempt → the last step in its log, if the journal
    does not have it (no supervisor watched its end).
    """

    spec: RunSpec
    particulars: tuple[Record, ...] = ()
    loss: LossCourse = LossCourse()
    metrics: tuple[MetricCourse, ...] = ()
    usage: Usage = Usage()
    log_ends: Mapping[int, tuple[str, ...]] = {}
    log_steps: Mapping[int, int] = {}


class AttemptRow(msgspec.Struct, frozen=True, kw_only=True):
    """Times in epoch seconds and seconds; ``began_from`` and ``ended`` as text."""

    number: int
    began_wall: float
    ran_s: float | None
    began_from: str
    ended: str
    last_step: int | None
    adopted: bool
    changes: tuple[str, ...]
    log: str | None
    log_end: tuple[str, ...] = ()


class IncidentRow(msgspec.Struct, frozen=True, kw_only=True):
    """``down_s``: from the last sign of life to the first step after it. ``did``: what was done, in order."""

    id: int
    wall: float
    kind: str
    class_: str = msgspec.field(name="class")
    title: str
    seen: str
    cause: str
    evidence: tuple[str, ...]
    did: tuple[str, ...]
    ending: str
    open: bool
    ended_by: EndedBy = ""
    closed_wall: float | None = None
    lost_steps: int | None
    lost_s: float | None
    down_s: float | None


class CheckpointRow(msgspec.Struct, frozen=True, kw_only=True):
    """Newest first. ``good``: complete; ``unknown``: not understood, so that only its trainer can tell.

    ``score``: as text, also whether it is the best; empty if it was not evaluated.
    """

    name: str
    path: str
    position: str
    size_bytes: int
    mtime: float
    verdict: str
    reason: str
    good: bool
    unknown: bool
    score: str = ""


class Away(msgspec.Struct, frozen=True, kw_only=True):
    """The time since a person last looked. ``lost``: where it went; ``restarts``: launches in it but the first one."""

    since_wall: float
    wall_s: float
    lost: LostTime | None
    restarts: int


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Units: seconds, epoch seconds, bytes. ``summary``: one sentence, ``waiting``: what needs a person."""

    run: str
    id: str
    state: str
    reason: str
    summary: str
    written_wall: float
    began_wall: float | None
    ended_wall: float | None
    wall_s: float | None
    ettr: float | None
    unproven: bool = False
    """It is finished, and nothing showed that it was the end."""
    of_perfect: float | None = None
    """The wall time of a perfect supervisor over this one's."""
    lost: LostTime | None = None
    """Saves and failures, and how often a save would lose the least time."""
    last_seen: str = ""
    """If nobody watches the run now: in which state it was last seen, and how long ago."""
    step: int | None
    total_steps: int | None
    eta_s: float | None = None
    total_by: str | None = None
    """By what the end is known, if not by the log."""
    loss: LossCourse
    loss_is_nan: bool = False
    """Now, or at the end."""
    metrics: tuple[MetricCourse, ...] = ()
    targets: tuple[Target, ...] = ()
    """How well it used its machine."""
    restarts: int
    waiting: tuple[str, ...]
    needs: tuple[Need, ...] = ()
    """The same, and what a person knows already, with what each is about."""
    away: Away | None = None
    """If the report is for somebody who comes back: the time since the last look."""
    withheld: tuple[str, ...] = ()
    """What would have been done by itself and was not, oldest first."""
    attempts: tuple[AttemptRow, ...]
    incidents: tuple[IncidentRow, ...]
    checkpoints: tuple[CheckpointRow, ...]
    scores: str = ""
    """The newest score and the best one; empty without ``[evaluate]``."""
    changes: tuple[str, ...]
    change_walls: tuple[float, ...] = ()
    """When each of them was made."""
    environment: tuple[tuple[str, str], ...]


def date(wall: float | None) -> str:
    """2025-11-21 23:20, local time."""
    return quantity.UNKNOWN if wall is None else datetime.fromtimestamp(wall).astimezone().strftime(DATE)


def state_words(report: Report) -> str:
    """The state as text: finished, given up; last seen running 50 s ago."""
    return report.last_seen or STATE_WORDS.get(report.state, report.state)


CHECKPOINTS_SHOWN = 30
