"""The report of a run: what happened, what it cost, and what the user has to decide.

The texts of a Report hold no secrets, so every form of it can be sent to others.
``report_building.py`` makes one, ``report_pages.py`` and ``report_pages.py`` write it.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import accumulate
from typing import NamedTuple

import msgspec

from ..model.attempt import AttemptStory, EndedBy
from ..model.decision import Record
from ..model.run import RunSpec
from ..model.story import Need
from . import quantity
from .state.lost_time import LostTime
from .words import STATE_WORDS

# Which attempt came next: looked up for each attempt and each incident of a run, which may have thousands.


class Starts:
    """The starts of the attempts of a run, in the order of its journal."""

    def __init__(self, attempts: Sequence[AttemptStory]) -> None:
        self._attempts = attempts
        # The highest so far, so that both rise whatever the journal says.
        self._numbers = list(accumulate((a.number for a in attempts), max))
        self._times = list(accumulate((a.t for a in attempts), max))

    def after(self, attempt: AttemptStory) -> AttemptStory | None:
        """The first attempt with a higher number."""
        at = bisect_right(self._numbers, attempt.number)
        return self._attempts[at] if at < len(self._attempts) else None

    def next_t(self, t: float) -> float | None:
        """When an attempt was started next after ``t``, in run seconds."""
        at = bisect_right(self._times, t)
        return self._attempts[at].t if at < len(self._attempts) else None


# How well a run used its machine, against the targets of a balanced run. Pure.
#
# Source: docs/sources.md, SDXL LoRA on 16 GB of VRAM: the machine is used well and keeps a margin for a night of 8 to
# 12 hours. A run on another machine may miss some of them for good reasons; nothing follows from it.

UTIL_PCT = 95.0
VRAM_PCT = (90.0, 98.0)
RAM_PCT = (60.0, 70.0)
TEMP_C = 80.0
SWAP_BYTES = 1e9
NIGHT_S = 8 * 3600.0


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
    return tuple(_rows(usage))


def _rows(usage: Usage) -> Iterator[Target]:
    if (util := usage.util_pct) is not None:
        yield Target(what="GPU utilisation", value=f"{util:.0f} %", target=f"> {UTIL_PCT:.0f} %", met=util > UTIL_PCT)
    if usage.vram_pct is not None:
        yield _within("GPU memory", usage.vram_pct, VRAM_PCT)
    if usage.ram_pct is not None:
        yield _within("RAM", usage.ram_pct, RAM_PCT)
    if (temp := usage.temp_c) is not None:
        yield Target(what="hottest GPU", value=f"{temp:.0f} °C", target=f"< {TEMP_C:.0f} °C", met=temp < TEMP_C)
    if (swap := usage.swap_bytes) is not None:
        most = f"< {quantity.memory(SWAP_BYTES)}"
        yield Target(what="most swap", value=quantity.memory(swap), target=most, met=swap < SWAP_BYTES)
    if (alone := usage.alone_s) is not None:
        night = quantity.duration(NIGHT_S)
        yield Target(what="longest without a crash", value=quantity.duration(alone), target=night, met=alone >= NIGHT_S)


def _within(what: str, value: float, bounds: tuple[float, float]) -> Target:
    low, high = bounds
    return Target(what=what, value=f"{value:.0f} %", target=f"{low:.0f}–{high:.0f} %", met=low <= value <= high)


TARGET_HEAD = ("while it trained", "", "target", "met")


def target_cells(rows: Sequence[Target]) -> list[tuple[str, ...]]:
    """what, value, target, yes or no."""
    return [(row.what, row.value, row.target, "yes" if row.met else "no") for row in rows]


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
    """Units: seconds, epoch seconds, bytes. ``summary``: one sentence, ``waiting``: what a person can do."""

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
    """The same as ``waiting``, with what each is about."""
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


# The rows of a report, shared by Markdown and HTML.

CHECKPOINTS_SHOWN = 30
ATTEMPT_HEAD = ("attempt", "began", "ran", "from", "ended", "last step")
CHECKPOINT_HEAD = ("checkpoint", "at", "size", "saved", "verdict")


def overview(report: Report) -> list[tuple[str, str]]:
    """The numbers of the first table, as (what, value)."""
    loss = report.loss
    rows = [
        ("state", state_words(report) + (f": {report.reason}" if report.reason else "")),
        ("began", date(report.began_wall)),
        ("ended", "goes on" if report.ended_wall is None else date(report.ended_wall)),
        ("wall time", quantity.duration(report.wall_s)),
        (
            "steps",
            quantity.count(report.step) + (f" of {quantity.count(report.total_steps)}" if report.total_steps else ""),
        ),
        ("loss", f"{_loss(loss.first)} → {_loss(loss.last)} (lowest {_loss(loss.lowest)})"),
        ("productive time (ETTR)", _share(report.ettr)),
        ("lost time", lost_words(report)),
        ("against a perfect supervisor", _share(report.of_perfect, digits=1)),
        ("restarts", quantity.count(report.restarts)),
        ("checkpoints", _checkpoint_counts(report)),
        *([("scores", report.scores)] if report.scores else []),
    ]
    return [(what, value) for what, value in rows if quantity.UNKNOWN not in value or what in {"state", "steps"}]


def lost_words(report: Report) -> str:
    """``12 m repeating steps, 3 m starting up, 2 m detecting, 40 s restarting``; what took no time is left out."""
    lost = report.lost
    if lost is None:
        return quantity.UNKNOWN
    parts = (
        ("repeating steps", lost.redone_s),
        ("starting up", lost.startup_s),
        ("detecting", lost.detection_s),
        ("ending and restarting", lost.restart_s),
        ("waiting for a person", lost.waited_s),
        ("without a step until now", lost.silent_s),
        ("asleep or frozen, with no step", lost.frozen_s),
        ("not known, as nobody watched", lost.unknown_s),
    )
    told = [f"{quantity.duration(seconds)} {what}" for what, seconds in parts if seconds is None or seconds >= 1.0]
    return ", ".join(told) or "none"


def _share(value: float | None, digits: int = 0) -> str:
    return quantity.UNKNOWN if value is None else f"{100 * value:.{digits}f} %"


def cost_words(i: IncidentRow) -> str:
    """The cost of an incident; empty if unknown."""
    parts = []
    if i.lost_steps is not None:
        took = f" ({quantity.duration(i.lost_s)})" if i.lost_s and i.lost_steps else ""
        parts.append(f"{quantity.plural(i.lost_steps, 'step')} done again{took}")
    if i.down_s is not None:
        parts.append(f"{quantity.duration(i.down_s)} without training")
    return ", ".join(parts)


def attempt_cells(a: AttemptRow) -> tuple[str, ...]:
    """number, began, ran, from, ended, last step."""
    ran = quantity.duration(a.ran_s)
    return str(a.number), date(a.began_wall), ran, a.began_from, a.ended, quantity.count(a.last_step)


METRIC_HEAD = ("metric", "first", "last", "lowest", "highest")


def metric_cells(report: Report) -> list[tuple[str, ...]]:
    """The numbers that the trainer logged by name."""
    return [(m.name, *(f"{value:.4g}" for value in (m.first, m.last, m.lowest, m.highest))) for m in report.metrics]


def footer(report: Report) -> str:
    """Author, time and run."""
    return f"Written {date(report.written_wall)} by trainwatch for run {report.id}; secrets are removed."


def checkpoint_head(report: Report) -> tuple[str, ...]:
    """The head of ``checkpoint_cells``: with scores, if there are any."""
    return (*CHECKPOINT_HEAD, "score") if report.scores else CHECKPOINT_HEAD


def checkpoint_cells(report: Report) -> list[tuple[str, ...]]:
    """Name, position, size, date, verdict, score of the newest ones."""
    return [
        (
            c.name,
            c.position,
            quantity.size(c.size_bytes),
            date(c.mtime),
            c.verdict + (f": {c.reason}" if c.reason else ""),
            *([c.score] if report.scores else []),
        )
        for c in report.checkpoints[:CHECKPOINTS_SHOWN]
    ]


def checkpoints_not_shown(report: Report) -> int:
    """How many there are beside those of ``checkpoint_cells``."""
    return max(0, len(report.checkpoints) - CHECKPOINTS_SHOWN)


class Point(NamedTuple):
    """One fact about an incident; ``quoted``: text from elsewhere, shown as it is."""

    label: str
    text: str
    quoted: bool = False


def incident_title(i: IncidentRow) -> str:
    """Number, when, what."""
    return f"{i.id}. {date(i.wall)} {i.kind}: {i.title}"


def incident_points(i: IncidentRow) -> Iterator[Point]:
    """From what was seen to its cost."""
    if i.seen != i.title:
        yield Point("Seen", i.seen)
    if i.cause:
        yield Point("Cause", i.cause)
    yield from (Point("Evidence", e, quoted=True) for e in i.evidence)
    yield from (Point("Done", d) for d in i.did)
    yield Point("Outcome", i.ending)
    if cost := cost_words(i):
        yield Point("Cost", cost)


def _loss(value: float | None) -> str:
    return quantity.UNKNOWN if value is None else quantity.three_digits(value)


def _checkpoint_counts(report: Report) -> str:
    """``3 complete, 2 of unknown format, 1 not complete``; the middle one only if there are such."""
    good = sum(c.good for c in report.checkpoints)
    unknown = sum(c.unknown and not c.good for c in report.checkpoints)
    bad = sum(not c.good and not c.unknown for c in report.checkpoints)
    told = [f"{good} complete", *([f"{unknown} of unknown format"] if unknown else []), f"{bad} not complete"]
    return ", ".join(told)
