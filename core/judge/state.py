"""Everything the judge remembers, as one frozen value made of small parts that are replaced one at a time.

It is written to disk now and then (``to_snapshot``), so that a supervisor that adopts a running trainer knows what is
usual for it. A snapshot of another version is not read: the judge learns again, with the deadlines of a new run.
"""

from collections.abc import Callable, Container, Mapping
from typing import Any, TypeVar

import msgspec

from ..model import fact as facts
from ..model.checkpoint import Verdict
from ..model.decision import Decision, Entry, NotifyPeople, OfAttempt
from ..model.preset import ResumeSupport
from ..model.progress import PLAIN, Progress, Why
from ..model.run import Incident, IncidentKind, Severity
from ..model.settings import NoticeEvent, Settings
from . import run_states
from .failure.catalogue import CompiledCatalogue
from .findings import MachineHealth, pace_of
from .hang.deadlines import Watch
from .hang.pauses import ActiveTime, Unseen
from .knowledge import Knowledge
from .memory import AttemptLog, Journal, OperatorMemory, PolicyMemory, Saved
from .progress import AttemptProgress, JobFacts
from .resume import checkpoint_index, resume_point
from .resume.checkpoint_index import CheckpointIndex
from .run_states import Event, Idle, Machine, RestartPlan
from .scales import KEPT, LASTS_S, TOLERANCE, TWICE
from .slow import Course

WARN_AGAIN_S = 1800.0
"""A warning that comes and goes (an occasional NaN, a temperature at its bound) is notified again after this at the
earliest. One that lasts is notified once; the health line repeats it."""
SNAPSHOT_VERSION = 3

T = TypeVar("T", bound=msgspec.Struct)


class JudgeState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Parts by subject, each explained in its module.

    ``attempts``: launches decided or seen. ``taken_over``: a trainer that was found running was reported since this
    supervisor began. ``wake_t``: when the state of the run is due; None = it is not, as after a snapshot was read.
    """

    time: ActiveTime = ActiveTime()
    machine: Machine = Idle()
    wake_t: float | None = None
    attempts: int = 0
    taken_over: bool = False
    attempt: AttemptProgress = AttemptProgress()
    job: JobFacts = JobFacts()
    log: AttemptLog = AttemptLog()
    watch: Watch = Watch()
    course: Course = Course()
    health: MachineHealth = MachineHealth()
    saved: Saved = Saved()
    policy: PolicyMemory = PolicyMemory()
    operator: OperatorMemory = OperatorMemory()
    journal: Journal = Journal()

    @property
    def progress(self) -> Progress:
        return self.log.reading.progress


Result = tuple[JudgeState, tuple[Entry, ...]]
"""What a step returns: the new state, and facts and decisions in the order in which they are written."""


def to_snapshot(state: JudgeState) -> dict[str, Any]:
    """Return the state in plain JSON types; of the checkpoints the newest only: the journal tells of the others."""
    known = state.saved.checkpoints.known
    if len(known) > KEPT:
        state = changed(state, "saved.checkpoints", known=checkpoint_index.by_age(known)[-KEPT:])
    built: dict[str, Any] = msgspec.to_builtins(state)
    return {"version": SNAPSHOT_VERSION, **built}


def from_snapshot(snapshot: Mapping[str, Any]) -> JudgeState | None:
    """The state again; None when it is of another version or damaged."""
    if snapshot.get("version") != SNAPSHOT_VERSION:
        return None
    body = {key: value for key, value in snapshot.items() if key != "version"}
    try:
        state = msgspec.convert(body, JudgeState)
    except msgspec.ValidationError:
        return None
    return msgspec.structs.replace(state, taken_over=False)


def changed(value: T, part: str, **changes: Any) -> T:
    """The value with other fields in a part of it, such as "watch" or "watch.clock" of a state."""
    if part:
        name, _, inner = part.partition(".")
        changes = {name: changed(getattr(value, name), inner, **changes)}
    return msgspec.structs.replace(value, **changes)


class StepBuilder:
    """One step of the judge: the new ``state``, and ``entries``, the facts and decisions for the journal, in order."""

    def __init__(self, knowledge: Knowledge, state: JudgeState) -> None:
        self.knowledge = knowledge
        self.state = state
        self.entries: list[Entry] = []

    @property
    def t(self) -> float:
        return self.state.time.t

    @property
    def now(self) -> float:
        """The active time now, in seconds: run time without that in which nothing could be seen."""
        return self.state.time.now

    @property
    def settings(self) -> Settings:
        return self.knowledge.settings

    @property
    def support(self) -> ResumeSupport:
        return self.knowledge.resume_support

    @property
    def catalogue(self) -> CompiledCatalogue:
        return self.knowledge.catalogue

    @property
    def machine(self) -> Machine:
        return self.state.machine

    @property
    def attempt(self) -> AttemptProgress:
        return self.state.attempt

    @property
    def index(self) -> CheckpointIndex:
        return self.state.saved.checkpoints

    @property
    def lost_by_divergence(self) -> bool:
        """The loss diverged, and the settings go back for that: finite values say nothing of what was saved since."""
        return self.state.course.loss.diverges and self.settings.loss.diverged != "warn"

    def typed(self, verb: str, *words: str) -> str:
        """Return the command that a person may paste."""
        return self.knowledge.typed(verb, *words)

    def set(self, **changes: Any) -> None:
        self.state = msgspec.structs.replace(self.state, **changes)

    def change(self, part: str, **changes: Any) -> None:
        """Replace fields of a part of the state."""
        self.state = changed(self.state, part, **changes)

    def checkpoint(self, path: str | None) -> checkpoint_index.KnownCheckpoint | None:
        """Return what is known of the checkpoint of this path."""
        return checkpoint_index.find(self.index, path)

    def in_front(self, path: str | None, before_t: float | None = None) -> tuple[checkpoint_index.KnownCheckpoint, ...]:
        """Return the bad ones that a trainer which chooses its checkpoint by itself may take instead of this one."""
        if not self.knowledge.trainer_chooses(path):
            return ()
        return resume_point.in_front(self.index, path, before_t, trained=self.state.policy.trained)

    def resume_point(self, plan: RestartPlan) -> tuple[str | None, checkpoint_index.KnownCheckpoint | None]:
        """Return what the next attempt begins from, and what is known of it; (None, None): from the beginning."""
        return resume_point.to_begin_from(
            self.index, self.support, wanted=plan.wanted, before_t=plan.before_t, first=self.attempt.resume_from
        )

    def tell_checkpoint(
        self, known: checkpoint_index.KnownCheckpoint, verdict: Verdict, *, removed: bool = False
    ) -> None:
        """Append the journal's record of a checkpoint."""
        self.fact(checkpoint_index.as_fact(known, self.knowledge.created_wall, verdict, removed=removed))

    def mark(self, paths: Container[str | None], **fields: Any) -> None:
        """Replace fields of the checkpoints of these paths."""
        self.change("saved", checkpoints=checkpoint_index.changed(self.index, paths, **fields))

    def fact(self, fact: facts.Fact) -> None:
        self.entries.append(fact)

    def note(self, text: str, about: facts.NoteAbout = "") -> None:
        self.entries.append(facts.Note(text=text, about=about))

    def decide(self, kind: type[Decision], reason: str, *, incident: int | None = None, **fields: Any) -> int:
        """Append a decision; returns its id. One about an attempt is about the present one, if none is named."""
        number = self.state.journal.decision + 1
        if issubclass(kind, OfAttempt):
            fields.setdefault("attempt", self.attempt.number)
        self.change("journal", decision=number)
        self.entries.append(kind(id=number, reason=reason, incident=incident, **fields))
        return number

    def notify(self, event: NoticeEvent, title: str, body: str = "", incident: int | None = None) -> None:
        """Notify people, by the channels of ``[notify]``."""
        self.decide(
            NotifyPeople, title, incident=incident, event=event, title=f"{self.knowledge.run}: {title}", body=body
        )

    def move(self, event: Event, machine: Machine, reason: str = "", why: Why = PLAIN) -> None:
        """Change the state of the run, by the table row of ``event``; a new public state becomes a fact.

        ``reason``: of that fact; none, if the public state stays.
        """
        before, after = run_states.check_transition(self.state.machine, event, machine)
        self.set(machine=machine, wake_t=run_states.wake_t(machine))
        waiting = self.state.operator.withheld
        if waiting is not None and waiting.state != after:
            self.change("operator", withheld=None)
            self.fact(facts.QuestionClosed(why=reason))
        until = None
        if isinstance(machine, run_states.BackingOff) and machine.need_bytes is None:
            until = machine.until_t
        if run_states.WORDS[after] != run_states.WORDS[before] or until is not None:
            self.fact(facts.StateChanged(state=run_states.WORDS[after], reason=reason, until_t=until, why=why))

    def open_incident(
        self,
        kind: IncidentKind,
        class_: str,
        reason: str,
        *,
        severity: Severity = "danger",
        ending: str | None = None,
        title: str = "",
        step: int | None = None,
        **fields: Any,
    ) -> int:
        """Open an incident; returns its id. ``fields``: others of ``Incident``.

        ``ending``: it is over already, and how it ended. ``title``: its own. ``step``: where it began, if not now.
        """
        number = self.state.journal.incident + 1
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
            step=self.state.attempt.step if step is None else step,
            open=ending is None,
            closed_t=None if ending is None else self.t,
            ending=ending,
            **fields,
        )
        known = self.state.journal.incidents if ending is not None else (*self.state.journal.incidents, incident)
        self.change("journal", incident=number, incidents=known)
        self.fact(facts.IncidentOpened(incident=incident))
        return number

    def warn(self, kind: IncidentKind, class_: str, reason: str, *, title: str = "", **fields: Any) -> int:
        """Open an incident that does not stop the training, and notify people. Returns its id.

        One that comes and goes is notified again only after ``WARN_AGAIN_S``. ``title``: of the notice, if the reason
        is too long. ``fields``: as of ``open_incident``; ``explanation``: what follows, and what to do.
        """
        number = self.open_incident(kind, class_, reason, severity="warning", **fields)
        if not self.warned_lately(kind, class_):
            body = "; ".join(filter(None, [reason if title else "", fields.get("explanation", "")]))
            self.notify_of(kind, class_, title or reason, body, number)
        return number

    def notify_of(
        self, kind: IncidentKind, class_: str, title: str, body: str, number: int, *, event: NoticeEvent = "warning"
    ) -> None:
        """Notify people of an incident of this kind and class, and remember when."""
        self.change("journal", warned={**self.state.journal.warned, f"{kind}:{class_}": self.t})
        self.notify(event, title, body, incident=number)

    def warned_lately(self, kind: IncidentKind, class_: str) -> bool:
        """Return whether people were notified of such an incident less than ``WARN_AGAIN_S`` ago."""
        warned_t = self.state.journal.warned.get(f"{kind}:{class_}")
        return warned_t is not None and self.t - warned_t < WARN_AGAIN_S

    def find_incident(self, number: int | None) -> Incident | None:
        return next((i for i in self.state.journal.incidents if i.id == number), None)

    def open_of(self, *classes: str) -> Incident | None:
        """Return the open incident of these classes; the oldest of several."""
        return next((i for i in self.state.journal.incidents if i.class_ in classes), None)

    def close_all(self, ending: str, *classes: str, **changes: Any) -> None:
        self.close_where(ending, lambda incident: incident.class_ in classes, **changes)

    def close_where(self, ending: str, closes: Callable[[Incident], bool], **changes: Any) -> None:
        for incident in self.state.journal.incidents:
            if closes(incident):
                self.close_incident(incident.id, ending, **changes)

    def update_incident(self, number: int | None, **changes: Any) -> None:
        """Change an open incident; does nothing for an unknown id."""
        incident = self.find_incident(number)
        if incident is None:
            return
        new = msgspec.structs.replace(incident, **changes)
        known = self.state.journal.incidents
        left = tuple(new if i.id == number else i for i in known if i.id != number or new.open)
        self.change("journal", incidents=left)
        self.fact(facts.IncidentUpdated(incident=new))

    def close_incident(self, number: int | None, ending: str, **changes: Any) -> None:
        """Close an incident; does nothing for an unknown id."""
        self.update_incident(number, open=False, closed_t=self.t, ending=ending, **changes)


# Time in which nothing was seen of the run, and how much of it the training used, by the steps that it made in it.
#
# Sources: a laptop that slept (the training stood still), a supervisor that was stopped or died (the training went
# on). Known limits: without a known pace, or without steps in the log, it stays unknown; a pause that the run makes by
# design in that time (an evaluation) is told as time without training.


def begin(state: JudgeState, lasted_s: float, *, adopted: bool) -> JudgeState:
    """Remember a time that ends now, and how far the run was before. One that ended a moment ago is part of it.

    ``adopted``: a new supervisor begins, whose state of the judge is older than the last record.
    """
    before, since_t, attempt = state.time.unseen, state.time.t - lasted_s, state.attempt
    if before is not None:
        unseen = msgspec.structs.replace(before, until_t=state.time.t)
    else:
        unseen = Unseen(
            since_t=since_t,
            known_t=since_t if attempt.beat_t is None or not adopted else min(since_t, attempt.beat_t),
            until_t=state.time.t,
            position=attempt.position,
            step_s=pace_of(state.course.pace) or state.watch.clock.step_s,
        )
    return changed(state, "time", unseen=unseen)


def is_due(state: JudgeState) -> bool:
    # The log of the time is read by then: 100 MB a second, polled each second.
    return state.time.unseen is not None and state.time.t >= state.time.unseen.until_t + LASTS_S


def tell(builder: StepBuilder) -> None:
    """Write down how much of the time the training used; nothing if there was none."""
    unseen = builder.state.time.unseen
    if unseen is not None:
        trained_s = _trained_s(unseen, builder.state.attempt.position, builder.t)
        builder.change("time", unseen=None)
        builder.fact(facts.NothingSeen(since_t=unseen.since_t, until_t=unseen.until_t, trained_s=trained_s))


def _trained_s(unseen: Unseen, position: int | None, t: float) -> float | None:
    if unseen.position is None or position is None or not unseen.step_s:
        return None
    lasted_s = unseen.until_t - unseen.since_t
    watched_s = (unseen.since_t - unseen.known_t) + (t - unseen.until_t)
    made_s = (position - unseen.position) * unseen.step_s - watched_s
    if lasted_s - made_s <= TOLERANCE * lasted_s + TWICE * unseen.step_s:
        return lasted_s
    if unseen.known_t < unseen.since_t and made_s < -(TOLERANCE * watched_s + TWICE * unseen.step_s):
        return None  # it did not train all the time before either, which that older state does not know
    return max(0.0, made_s)
