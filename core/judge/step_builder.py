"""What one step builds: the new state, and the facts and decisions for the journal, in order."""

from typing import Any

import msgspec

from ..model.decision import Decision, NotifyPeople
from ..model.fact import Fact, IncidentOpened, IncidentUpdated, Note, NoteAbout, QuestionClosed, StateChanged
from ..model.incident import Evidence, Incident, IncidentKind, Severity
from ..model.record import Entry
from ..model.settings import NoticeEvent
from ..model.why import PLAIN, Why
from . import run_machine, run_states
from .knowledge import Knowledge
from .run_machine import NEVER, Event
from .run_states import Machine
from .state import JudgeState


class StepBuilder:
    """Used by one call of ``Judge.step``, which returns its ``state`` and ``entries``."""

    def __init__(self, knowledge: Knowledge, state: JudgeState) -> None:
        self.knowledge = knowledge
        self.state = state
        self.entries: list[Entry] = []

    @property
    def t(self) -> float:
        """The run time now, in seconds."""
        return self.state.time.t

    def set(self, **changes: Any) -> None:
        """Replace parts of the state."""
        self.state = msgspec.structs.replace(self.state, **changes)

    def fact(self, fact: Fact) -> None:
        """Append a fact to this step's entries."""
        self.entries.append(fact)

    def note(self, text: str, about: NoteAbout = "") -> None:
        """Append a sentence for the journal."""
        self.entries.append(Note(text=text, about=about))

    def decide(self, kind: type[Decision], reason: str, *, incident: int | None = None, **fields: Any) -> int:
        """Append a decision; returns its id."""
        number = self.state.decision + 1
        self.set(decision=number)
        self.entries.append(kind(id=number, reason=reason, incident=incident, **fields))
        return number

    def notify(self, event: NoticeEvent, title: str, body: str = "", incident: int | None = None) -> None:
        """Notify people, by the channels of ``[notify]``."""
        self.decide(
            NotifyPeople, title, incident=incident, event=event, title=f"{self.knowledge.run}: {title}", body=body
        )

    def move(self, event: Event, machine: Machine, reason: str, why: Why = PLAIN) -> None:
        """Change the state of the run, by the table row of ``event``; a new public state becomes a fact."""
        before, after = run_machine.check_transition(self.state.machine, event, machine)
        wake = run_machine.wake_t(machine)
        self.set(machine=machine, wake_t=None if wake == NEVER else wake)
        waiting = self.state.withheld
        if waiting is not None and waiting.state != after:
            self.set(withheld=None)
            self.fact(QuestionClosed(why=reason))
        until = machine.until_t if isinstance(machine, run_states.BackingOff) else None
        if run_states.WORDS[after] != run_states.WORDS[before] or until is not None:
            self.fact(StateChanged(state=run_states.WORDS[after], reason=reason, until_t=until, why=why))

    def open_incident(
        self,
        kind: IncidentKind,
        class_: str,
        reason: str,
        *,
        severity: Severity = "danger",
        evidence: tuple[Evidence, ...] = (),
        explanation: str = "",
        confidence: float | None = None,
        detect_s: float | None = None,
        ending: str | None = None,
        title: str = "",
        step: int | None = None,
        average: bool = False,
    ) -> int:
        """Open an incident; returns its id.

        ``ending``: it is over already, and how it ended. ``title``: its own. ``step``: where it began, if not now.
        """
        number = self.state.incident + 1
        incident = Incident(
            id=number,
            t=self.t,
            wall=self.knowledge.created_wall + self.t,
            attempt=self.state.attempt.number,
            kind=kind,
            class_=class_,
            title=title or (self.knowledge.catalogue.class_of(class_).title if kind == "crash" else ""),
            severity=severity,
            reason=reason,
            explanation=explanation,
            confidence=confidence,
            evidence=evidence,
            step=self.state.attempt.step if step is None else step,
            open=ending is None,
            closed_t=None if ending is None else self.t,
            ending=ending,
            detect_s=detect_s,
            average=average,
        )
        known = self.state.incidents if ending is not None else (*self.state.incidents, incident)
        self.set(incident=number, incidents=known)
        self.fact(IncidentOpened(incident=incident))
        return number

    def warn(
        self,
        kind: IncidentKind,
        class_: str,
        reason: str,
        *,
        title: str = "",
        ending: str | None = None,
        evidence: tuple[Evidence, ...] = (),
        detect_s: float | None = None,
        step: int | None = None,
        explanation: str = "",
        average: bool = False,
    ) -> int:
        """Open an incident that does not stop the training, and notify people. Returns its id.

        One that comes and goes is notified again only after ``notify.again_s``. ``title``: if the reason is too long.
        ``explanation``: what follows, and what to do.
        """
        number = self.open_incident(
            kind, class_, reason, severity="warning", ending=ending, evidence=evidence, detect_s=detect_s, step=step,
            explanation=explanation, average=average,
        )  # fmt: skip
        if not self.warned_lately(kind, class_):
            self.set(warned={**self.state.warned, f"{kind}:{class_}": self.t})
            body = "; ".join(filter(None, [reason if title else "", explanation]))
            self.notify("warning", title or reason, body, incident=number)
        return number

    def warned_lately(self, kind: IncidentKind, class_: str) -> bool:
        """Return whether people were notified of such an incident less than ``notify.again_s`` ago."""
        warned_t = self.state.warned.get(f"{kind}:{class_}")
        return warned_t is not None and self.t - warned_t < self.knowledge.settings.notify.again_s

    def find_incident(self, number: int | None) -> Incident | None:
        """Return an open incident by id."""
        return next((i for i in self.state.incidents if i.id == number), None)

    def update_incident(self, number: int | None, **changes: Any) -> None:
        """Change an open incident; does nothing for an unknown id."""
        incident = self.find_incident(number)
        if incident is None:
            return
        new = msgspec.structs.replace(incident, **changes)
        self.set(
            incidents=tuple(new if i.id == number else i for i in self.state.incidents if i.id != number or new.open)
        )
        self.fact(IncidentUpdated(incident=new))

    def close_incident(self, number: int | None, ending: str, **changes: Any) -> None:
        """Close an incident; does nothing for an unknown id."""
        self.update_incident(number, open=False, closed_t=self.t, ending=ending, **changes)
