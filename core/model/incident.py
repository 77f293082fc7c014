"""A finding or crash with severity and evidence, open until closed."""

from typing import Literal

import msgspec

IncidentKind = Literal[
    "hang", "quiet", "stall", "crash", "health", "loss", "checkpoint", "disk", "resume", "supervisor", "progress"
]
NAN_CLASSES = frozenset({"nan", "nan_loss"})
"""Classes of incidents of a loss that is not a number."""
DIVERGING = "diverging"
"""Class of the incident (kind ``loss``) of a loss that had fallen and is far above its lowest; open while it lasts."""
OTHER_TRAINER = "other_trainer"
"""Class of the incident (kind ``checkpoint``) of a trainer that writes where the run writes."""
NO_STEP = "no_step"
"""Class of the incident (kind ``progress``) of a training that saves checkpoints while no step is read from its log."""
ADVISED = frozenset({NO_STEP, OTHER_TRAINER})
"""Classes that only a person can end; their explanation says how."""
EndedBy = Literal["", "attempt", "hang"]
"""``attempt``: the end of its attempt closed it, and what was wrong was not put right. ``hang``: of this silence there
is an incident of its own."""
Severity = Literal["info", "warning", "danger"]
HangKind = Literal["idle", "spin", "starved", "exiting", "waiting"]


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """``what``: for the user; ``line``: in the attempt's log, from 1; ``then``: it follows from the one before."""

    what: str
    line: int | None = None
    then: bool | msgspec.UnsetType = msgspec.UNSET


class Incident(msgspec.Struct, frozen=True, kw_only=True):
    """``class_``: a failure class for crashes, a HangKind for hangs, else a name within the kind.

    ``title``: of the class. ``step`` is the last one seen when it opened; ``lost_steps`` is known after the run
    resumed.
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
    confidence: float | None = None
    """0 to 1, that the class of a crash is right, or that what hangs does not go on; None = not weighed, or unknown."""
    evidence: tuple[Evidence, ...] = ()
    step: int | None = None
    open: bool = True
    acknowledged: bool = False
    closed_t: float | None = None
    ending: str | None = None
    ended_by: EndedBy = ""
    average: bool = False
    """Of a NaN: it is an average, which one skipped step is enough for."""
    lost_steps: int | None = None
    resumed_from: str | None = None
    resumed_step: int | None = None
    detect_s: float | None = None
    """From the last sign (death, or last step) to this incident, in seconds."""


class EvidenceFile(msgspec.Struct, frozen=True, kw_only=True):
    """One file of an incident's folder. ``text``: its beginning; ``cut``: the file is longer."""

    name: str
    text: str
    cut: bool = False
