"""Incidents as a list: what was seen, the cause, what was done and the cost."""

from collections.abc import Sequence

import msgspec

from ..model.attempt import Incident
from ..model.progress import Level
from ..model.story import Situation
from . import quantity
from .state.concerns import reason_now
from .words import change_words, title_of

KIND_LEVELS: dict[str, Level] = {"info": "safe", "warning": "warning", "danger": "danger"}
SHORT_S = 0.5
"""A shorter time would read *0 s*."""
SAME_BEGINNING = 60
"""Characters by which two texts of a line of the log are taken for the same one."""


class IncidentView(msgspec.Struct, frozen=True, kw_only=True):
    """One incident as text. Empty parts are unknown."""

    id: int
    kind: str
    title: str
    at: str
    level: Level
    open: bool
    acknowledged: bool
    status: str
    seen: str
    cause: str
    did: str
    cost: str
    evidence: tuple[str, ...] = ()
    ending: str = ""

    @property
    def endings(self) -> tuple[str, ...]:
        """Its status, from the longest text to the shortest: a list shows the first that fits."""
        short = self.status.partition(",")[0]
        full = (f"{self.status} · {self.cost}",) if self.cost else ()
        words = short.rpartition(" ")[0].partition(" (")[0]
        return (*full, self.status, short, "open" if self.open else words or short)


def incident_views(now: Situation) -> tuple[IncidentView, ...]:
    """All incidents, newest first, open ones before closed ones."""
    ordered = sorted(now.story.incidents, key=lambda i: (i.open, i.t, i.id), reverse=True)
    return tuple(incident_view(i, now) for i in ordered)


def folded(views: Sequence[IncidentView]) -> tuple[IncidentView, ...]:
    """Equal incidents as one, that of the newest, with how many there are and since when. In the order of the list."""
    alike: dict[tuple[str, str, bool], list[IncidentView]] = {}
    for view in views:
        alike.setdefault((view.kind, view.title, view.open), []).append(view)
    return tuple(
        newest
        if not older
        else msgspec.structs.replace(newest, title=f"{newest.title} · {len(older) + 1} times since {older[-1].at}")
        for newest, *older in alike.values()
    )


def incident_view(i: Incident, now: Situation) -> IncidentView:
    return IncidentView(
        id=i.id,
        kind=i.kind,
        title=title_now(i, now),
        at=quantity.clock(i.wall, now.now_wall, seconds=True),
        level=KIND_LEVELS[i.severity],
        open=i.open,
        acknowledged=i.acknowledged,
        status=_status(i, now),
        seen=_seen(i),
        cause=i.explanation,
        did=_did(i, now),
        cost=_cost(i),
        ending=i.ending or "",
        evidence=evidence_words(i),
    )


def _seen(i: Incident) -> str:
    """The reason, and the first evidence that adds to it; a quotation that was cut is the beginning of its line."""
    told = [i.reason] if i.kind in {"crash", "hang"} else []
    cut = i.reason.endswith("…")
    new = [e.what for e in i.evidence if not (e.what in i.reason or (cut and e.what[:SAME_BEGINNING] in i.reason))]
    return " · ".join([*told, *new[:3]])


def evidence_words(i: Incident) -> tuple[str, ...]:
    """Each with its line of the log, if it is from there."""
    return tuple(e.what if e.line is None else f"{e.what} (log line {quantity.count(e.line)})" for e in i.evidence)


def title_now(i: Incident, now: Situation) -> str:
    """The name of a crash or a hang; the reason of another one, with its newest value."""
    return title_of(i) if i.kind in {"crash", "hang"} else reason_now(i, now)


def _status(i: Incident, now: Situation) -> str:
    if i.open:
        return "acknowledged" if i.acknowledged else f"open for {quantity.duration(now.now_t - i.t)}"
    if i.closed_t is None:
        return i.ending or "closed"
    at = quantity.clock(now.story.wall0 + i.closed_t, now.now_wall, seconds=True)
    took = i.closed_t - i.t
    lasted = f", {quantity.duration(took)}" if took >= SHORT_S else ""
    return f"{(i.ending or 'closed').partition(':')[0]} {at}{lasted}"


def _did(i: Incident, now: Situation) -> str:
    parts: list[str] = []
    if i.resumed_step is not None:
        parts.append(f"resumed from step {quantity.count(i.resumed_step)}")
    elif i.resumed_from is not None:
        parts.append(f"resumed from {i.resumed_from.rstrip('/').rpartition('/')[2]}")
    after = next((a for a in now.story.attempts if a.number == i.attempt + 1), None)
    if after is not None and i.kind in {"crash", "hang"}:
        if not parts:
            parts.append(f"started attempt {after.number}" + ("" if after.resume_from else " from the beginning"))
        parts += [change_words(msgspec.structs.replace(c, why="")) for c in after.changes if c.before is not None]
    parts += [f"needs your decision: {p.title} [r]" for p in now.story.proposals if p.incident == i.id]
    return " · ".join(parts)


def _cost(i: Incident) -> str:
    if i.lost_steps is None:
        return ""
    steps = f"{quantity.plural(i.lost_steps, 'step')} again"
    if i.closed_t is None or i.detect_s is None:
        return steps
    return f"{steps} · {quantity.duration(i.closed_t - i.t + i.detect_s)} without training"
