"""A finding or crash with severity and evidence, open until closed."""

from typing import Literal

import msgspec

IncidentKind = Literal["hang", "stall", "crash", "health", "loss", "checkpoint", "disk", "resume", "supervisor"]
Severity = Literal["info", "warning", "danger"]
HangKind = Literal["idle", "spin", "starved", "exiting"]


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was seen: ``what`` in words for people, ``line`` where it stands in the attempt's log."""

    what: str
    line: int | None = None


class Incident(msgspec.Struct, frozen=True, kw_only=True):
    """``class_``: a failure class for crashes, a HangKind for hangs, else a word of the kind; ``title``: of the class.

    ``step`` is the last one seen when it opened; ``lost_steps`` is known once the run resumed (or cannot).
    """

    id: int
    t: float
    wall: float
    attempt: int
    kind: IncidentKind
    class_: str = msgspec.field(name="class")
    title: str = ""
    severity: Severity = "danger"
    reason: str
    explanation: str = ""
    evidence: tuple[Evidence, ...] = ()
    step: int | None = None
    open: bool = True
    acknowledged: bool = False
    closed_t: float | None = None
    ending: str | None = None
    lost_steps: int | None = None
    resumed_from: str | None = None
    resumed_step: int | None = None
    detect_s: float | None = None
    """From the last sign (death, or last step) to this incident, in seconds."""


class EvidenceFile(msgspec.Struct, frozen=True, kw_only=True):
    """One file of an incident's folder. ``text``: its beginning; ``cut``: there is more of it."""

    name: str
    text: str
    cut: bool = False
