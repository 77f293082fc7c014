"""What a report tells one by one and a story keeps the newest of, or nothing: actions for incidents, and commands.

Small beside the records that it comes from, so that a stored story can have all of it.
"""

from collections.abc import Iterable

import msgspec

from .decision import Decision, EndWatch, NotifyPeople
from .fact import CommandReceived, RampMoved
from .outcome import Outcome
from .record import Record


class IncidentAction(msgspec.Struct, frozen=True, array_like=True):
    """A decision for an incident. ``id``: its number; ``incident``: that of the incident; ``wall``: epoch seconds."""

    id: int
    incident: int
    wall: float
    reason: str


class ActionResult(msgspec.Struct, frozen=True, array_like=True):
    """How the action of a decision went. ``undecided``: as in ``Outcome``."""

    decision: int
    ok: bool
    undecided: bool
    detail: str


class Change(msgspec.Struct, frozen=True, array_like=True):
    """What a person or the ramp changed, at ``t`` run seconds."""

    t: float
    fact: CommandReceived | RampMoved


class Particulars(msgspec.Struct, frozen=True, array_like=True):
    """Each oldest first. ``results`` may have some of decisions that are not among ``actions``."""

    actions: tuple[IncidentAction, ...] = ()
    results: tuple[ActionResult, ...] = ()
    changes: tuple[Change, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.actions or self.results or self.changes)


class ParticularsFold:
    """Collects the particulars of the records that ``add`` sees, oldest first."""

    def __init__(self) -> None:
        self._actions: list[IncidentAction] = []
        self._results: list[ActionResult] = []
        self._changes: list[Change] = []
        self._told: set[int] = set()
        self._untold: set[int] = set()

    def add(self, record: Record) -> None:
        if record.decision is not None:
            self._decided(record.wall, record.decision)
        elif record.outcome is not None:
            self._done(record.outcome)
        elif isinstance(record.fact, CommandReceived | RampMoved):
            self._changes.append(Change(record.t, record.fact))

    def found(self) -> Particulars:
        return Particulars(tuple(self._actions), tuple(self._results), tuple(self._changes))

    def _decided(self, wall: float, decision: Decision) -> None:
        if decision.incident is None or isinstance(decision, NotifyPeople | EndWatch):
            self._untold.add(decision.id)
            return
        self._told.add(decision.id)
        self._actions.append(IncidentAction(decision.id, decision.incident, wall, decision.reason))

    def _done(self, outcome: Outcome) -> None:
        """The result of a decision that was not seen is kept: it may be one of those before."""
        if outcome.decision in self._told or outcome.decision not in self._untold:
            self._results.append(ActionResult(outcome.decision, outcome.ok, outcome.undecided, outcome.detail))


def particulars_of(records: Iterable[Record]) -> Particulars:
    """The particulars of these records, oldest first."""
    fold = ParticularsFold()
    for record in records:
        fold.add(record)
    return fold.found()


def joined(parts: Iterable[Particulars]) -> Particulars:
    """One of several, the oldest first."""
    found = tuple(parts)
    return Particulars(
        tuple(action for part in found for action in part.actions),
        tuple(result for part in found for result in part.results),
        tuple(change for part in found for change in part.changes),
    )
