"""The fold over the journal: ``apply(story, record) -> story``."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable
from typing import Any, assert_never

import msgspec

from .attempt import AttemptStory
from .change import ALLOWED_AGAIN, Change, FailedRung
from .checkpoint import AgeOrder, Checkpoint, Evaluation, age_order
from .decision import Decision, EvaluateCheckpoint, NotifyPeople
from .fact import (
    ActChanged,
    ActionWithheld,
    AttemptEnded,
    AttemptStarted,
    BudgetChanged,
    CheckpointEvaluated,
    CheckpointKnown,
    CheckpointsSetAside,
    CommandReceived,
    Fact,
    HealthChanged,
    IncidentOpened,
    IncidentUpdated,
    JudgeSnapshot,
    MetricFilesKnown,
    Note,
    NothingSeen,
    OutputKnown,
    PhaseChanged,
    ProfileChanged,
    ProgressMade,
    QuestionClosed,
    RampMoved,
    RemediesDropped,
    RemedyApplied,
    RemedyProposed,
    ResumeWayKnown,
    RunCreated,
    StateChanged,
    SupervisorEnded,
    SupervisorStarted,
)
from .outcome import Outcome
from .output_place import OutputPlace
from .progress import HealthReading
from .record import Record
from .story import (
    STATES,
    ActionStory,
    CheckpointOrigin,
    EvaluationBegun,
    PhaseSpan,
    ProfileSwitch,
    RampStep,
    RunStory,
    StateSpan,
    WithheldAction,
)

# The checkpoints of a story while records are added to it.
#
# In lists and dicts that change in place: a story is frozen, and a new one for each record would copy all of them each
# time.


class CheckpointFold:
    """Begins with the checkpoints of ``story``. ``into`` gives a story with what was added."""

    def __init__(self, story: RunStory) -> None:
        self._before = story
        self._checkpoints: list[Checkpoint] | None = None
        self._by_path: dict[str, Checkpoint] = {}
        self._times: dict[str, float] = {}
        self._origins: dict[str, CheckpointOrigin] = {}
        self._evaluations: dict[str, Evaluation] | None = None

    def add(self, t: float, fact: CheckpointKnown, story: RunStory) -> RunStory:
        """Take one in, in the order of age. Returns ``story`` with what else follows from it."""
        checkpoints = self._open()
        known = fact.checkpoint
        before = self._by_path.pop(known.path, None)
        if before is not None:
            del checkpoints[self._place_of(before)]
        if fact.removed:
            self._times.pop(known.path, None)
        else:
            _insert(checkpoints, known)
            self._by_path[known.path] = known
            self._times.setdefault(known.path, t)
        if known.path in self._origins or fact.origin is not None:
            self._origins.pop(known.path, None)
            if fact.origin is not None and not fact.removed:
                self._origins[known.path] = CheckpointOrigin(origin=fact.origin, t=fact.written_t)
        replaced = before is not None and before.mtime != known.mtime
        if (fact.removed or replaced) and known.path in story.set_aside:
            rest = {path: other for path, other in story.set_aside.items() if path != known.path}
            return msgspec.structs.replace(story, set_aside=rest)
        return story

    def evaluated(self, found: Evaluation, story: RunStory) -> RunStory:
        """Take in the result of an evaluation, as the newest."""
        if self._evaluations is None:
            self._evaluations = dict(self._before.evaluations)
        self._evaluations.pop(found.path, None)
        self._evaluations[found.path] = found
        if found.path not in story.evaluations_begun:
            return story
        begun = {path: other for path, other in story.evaluations_begun.items() if path != found.path}
        return msgspec.structs.replace(story, evaluations_begun=begun)

    def into(self, story: RunStory) -> RunStory:
        """``story`` with the checkpoints as they are now. It must have those with which this fold began."""
        if self._evaluations is not None:
            story = msgspec.structs.replace(story, evaluations=self._evaluations)
        if self._checkpoints is None:
            return story
        return msgspec.structs.replace(
            story,
            checkpoints=tuple(self._checkpoints),
            checkpoint_times=self._times,
            origins=self._origins,
        )

    def _open(self) -> list[Checkpoint]:
        if self._checkpoints is None:
            self._checkpoints = list(self._before.checkpoints)
            self._by_path = {each.path: each for each in self._checkpoints}
            self._times = dict(self._before.checkpoint_times)
            self._origins = dict(self._before.origins)
        return self._checkpoints

    def _place_of(self, known: Checkpoint) -> int:
        checkpoints = self._open()
        if checkpoints[-1] is known:  # nearly always: most records are about the newest checkpoint
            return len(checkpoints) - 1
        first = bisect_left(checkpoints, known.mtime, key=_mtime)
        for at in range(first, len(checkpoints)):
            if checkpoints[at] is known:
                return at
        return checkpoints.index(known)  # a story that was not made by records may have another order


def _insert(checkpoints: list[Checkpoint], known: Checkpoint) -> None:
    """Insert by modification time; among checkpoints of the same time by the other parts of their age."""
    if not checkpoints or checkpoints[-1].mtime < known.mtime:
        checkpoints.append(known)
        return
    first = bisect_left(checkpoints, known.mtime, key=_mtime)
    after = bisect_right(checkpoints, known.mtime, first, key=_mtime)
    if first != after:
        insort(checkpoints, known, first, after, key=_age)
    else:
        checkpoints.insert(first, known)


def _mtime(known: Checkpoint) -> float:
    return known.mtime


def _age(known: Checkpoint) -> AgeOrder:
    return age_order(known.name, known.mtime, known.step, known.epoch)


NOTICES = 50
PHASES = 2000
ACTIONS = 400


def apply(story: RunStory, record: Record) -> RunStory:
    """Return the story with one more record. Total: every record of a known version can be applied in any state."""
    return apply_all(story, (record,))


def apply_all(story: RunStory, records: Iterable[Record]) -> RunStory:
    """Return the story with more records, oldest first, in a time that is in proportion to their number.

    Of progress, which is most of a journal, only the newest counts, and nothing else of a story follows from it.
    """
    checkpoints = CheckpointFold(story)
    t, seq, progressed = story.t, story.seq, None
    for record in records:
        t, seq = max(t, record.t), record.seq
        if isinstance(record.fact, ProgressMade):
            progressed = record
        elif record.fact is not None:
            story = _apply_fact(story, record, record.fact, checkpoints)
        elif record.decision is not None:
            story = _apply_decision(story, record, record.decision)
        elif record.outcome is not None:
            story = _with_outcome(story, record.t, record.outcome)
    if progressed is not None and progressed.fact is not None:
        story = _apply_fact(story, progressed, progressed.fact, checkpoints)
    return checkpoints.into(msgspec.structs.replace(story, t=t, seq=seq))


def _apply_fact(story: RunStory, record: Record, fact: Fact, checkpoints: CheckpointFold) -> RunStory:
    replace = msgspec.structs.replace
    match fact:
        case RunCreated():
            return replace(
                story,
                run=fact,
                wall0=record.wall - record.t,
                profile=fact.profile,
                budget_max=fact.max_restarts,
                act=fact.act,
                act_settings=fact.act,
            )
        case ResumeWayKnown():
            return story if story.run is None else replace(story, run=replace(story.run, resume=fact.way))
        case SupervisorStarted():
            return replace(story, supervisor_pid=fact.pid)
        case SupervisorEnded():
            return _with_notice(replace(story, supervisor_pid=None), fact.why)
        case StateChanged():
            spans = (*story.states, StateSpan(t=record.t, state=fact.state))[-STATES:]
            return replace(
                story,
                state=fact.state,
                state_t=record.t,
                state_reason=fact.reason,
                state_why=fact.why,
                until_t=fact.until_t,
                states=spans,
            )
        case AttemptStarted():
            return replace(story, attempts=_started(story.attempts, record, fact), profile=fact.profile)
        case AttemptEnded():
            return replace(story, attempts=_ended(story.attempts, record, fact))
        case ProgressMade():
            return replace(story, progress_attempt=fact.attempt, **_shared(fact))
        case PhaseChanged():
            span = PhaseSpan(t=record.t, attempt=fact.attempt, phase=fact.phase)
            return replace(story, phases=(*story.phases, span)[-PHASES:])
        case CheckpointKnown():
            return checkpoints.add(record.t, fact, story)
        case OutputKnown():
            told = _with_notice(story, f"saves to {fact.folder}: {fact.why}")
            return replace(told, outputs=(*story.outputs, OutputPlace(folder=fact.folder, why=fact.why)))
        case CheckpointsSetAside():
            rest = {path: other for path, other in story.set_aside.items() if path not in fact.paths}
            return replace(story, set_aside=rest | (dict.fromkeys(fact.paths, fact) if fact.why else {}))
        case IncidentOpened():
            return _with_notice(replace(story, incidents=(*story.incidents, fact.incident)), fact.incident.reason)
        case IncidentUpdated():
            known = fact.incident
            return replace(story, incidents=tuple(known if i.id == known.id else i for i in story.incidents))
        case HealthChanged():
            reading = HealthReading(metric=fact.metric, value=fact.value, unit=fact.unit, level=fact.level)
            return replace(story, health={**story.health, fact.metric: reading})
        case BudgetChanged():
            return story.charged(fact.used, fact.max)
        case ProfileChanged():
            switch = ProfileSwitch(t=record.t, profile=fact.profile, why=fact.why, pending=fact.pending)
            return replace(
                story,
                profile=fact.profile,
                profile_pending=fact.pending,
                profile_switches=(*story.profile_switches, switch),
                failed_rungs=story.failed_rungs if fact.failed is None else _with_failed(story, fact.failed),
            )
        case RampMoved():
            moved = replace(
                story, ramp=(*story.ramp, RampStep(t=record.t, move=fact)), failed_rungs=_failed(story, fact)
            )
            return _with_notice(moved, f"{fact.before} → {fact.after}: {fact.why}")
        case RemedyApplied():
            waiting = tuple(p for p in story.proposals if p.name != fact.name)
            noticed = _with_notice(story, f"{fact.title}: {_changes_text(fact.changes, fact.profile)}")
            return replace(noticed, remedies=(*story.remedies, fact), proposals=waiting)
        case RemedyProposed():
            return replace(story, proposals=(*(p for p in story.proposals if p.name != fact.name), fact))
        case RemediesDropped():
            kept = tuple(r for r in story.remedies if r.name not in fact.names)
            return _with_notice(replace(story, remedies=kept), f"{', '.join(fact.names)} taken back: {fact.why}")
        case ActionWithheld():
            held = WithheldAction(t=record.t, action=fact)
            question = held if fact.waits else story.question
            told = replace(story, withheld=(*story.withheld, held)[-ACTIONS:], question=question)
            return _with_notice(told, f"would have {fact.sentence}")
        case QuestionClosed():
            return replace(story, question=None)
        case ActChanged():
            return replace(story, act=fact.act, act_settings=fact.settings)
        case CommandReceived():
            return _with_notice(story, f"{fact.verb} by {fact.by}" + (f": {fact.detail}" if fact.detail else ""))
        case MetricFilesKnown():
            before = tuple(known for known in story.metric_files if known.folder != fact.folder)
            return replace(story, metric_files=(*before, fact))
        case CheckpointEvaluated(evaluation=found):
            return checkpoints.evaluated(found, story)
        case NothingSeen():
            return replace(story, unseen=(*story.unseen, fact)[-STATES:])
        case Note():
            return _with_notice(story, fact.text)
        case JudgeSnapshot():
            return story
        case _:
            assert_never(fact)


def _changes_text(changes: tuple[Change, ...], profile: str | None) -> str:
    texts = [f"{c.key} {c.before} -> {c.after}" for c in changes]
    return ", ".join(texts if profile is None else [*texts, f"profile {profile}"])


def _failed(story: RunStory, fact: RampMoved) -> tuple[FailedRung, ...]:
    if fact.direction == ALLOWED_AGAIN:
        return tuple(rung for rung in story.failed_rungs if rung.profile != fact.after)
    if fact.direction != "back":
        return story.failed_rungs
    failed = FailedRung(profile=fact.before, ran_s=fact.ran_s, failure=fact.failure or "", step=fact.step)
    return _with_failed(story, failed)


def _with_failed(story: RunStory, failed: FailedRung) -> tuple[FailedRung, ...]:
    return (*(rung for rung in story.failed_rungs if rung.profile != failed.profile), failed)


def _apply_decision(story: RunStory, record: Record, decision: Decision) -> RunStory:
    if isinstance(decision, NotifyPeople):
        return story
    action = ActionStory(
        id=decision.id,
        t=record.t,
        kind=str(type(decision).__struct_config__.tag),
        reason=decision.reason,
        incident=decision.incident,
    )
    updated = msgspec.structs.replace(story, actions=(*story.actions, action)[-ACTIONS:])
    if isinstance(decision, EvaluateCheckpoint):
        updated = _begun(updated, record.t, decision)
    return _with_notice(updated, decision.reason)


def _begun(story: RunStory, t: float, decision: EvaluateCheckpoint) -> RunStory:
    before = story.evaluations_begun.get(decision.path)
    times = 1 + (before.times if before is not None and before.mtime == decision.mtime else 0)
    begun = EvaluationBegun(mtime=decision.mtime, times=times, t=t)
    return msgspec.structs.replace(story, evaluations_begun={**story.evaluations_begun, decision.path: begun})


def _with_outcome(story: RunStory, t: float, outcome: Outcome) -> RunStory:
    """Add an outcome to the newest action of its id."""
    for at in range(len(story.actions) - 1, -1, -1):
        known = story.actions[at]
        if known.id == outcome.decision and known.done_t is None:
            done = msgspec.structs.replace(known, done_t=t, ok=outcome.ok, detail=outcome.detail)
            return msgspec.structs.replace(story, actions=(*story.actions[:at], done, *story.actions[at + 1 :]))
    return story


def _with_notice(story: RunStory, text: str) -> RunStory:
    return msgspec.structs.replace(story, notices=(*story.notices, text)[-NOTICES:])


def _started(attempts: tuple[AttemptStory, ...], record: Record, fact: AttemptStarted) -> tuple[AttemptStory, ...]:
    """Add an attempt; a known one that was adopted again changes only its process."""
    at = _place_of(fact.attempt, attempts)
    if at is None:
        started = AttemptStory(number=fact.attempt, t=record.t, wall=record.wall, **_shared(fact))
        return (*attempts, started)
    again = msgspec.structs.replace(attempts[at], adopted=fact.adopted, pid=fact.pid)
    return (*attempts[:at], again, *attempts[at + 1 :])


def _place_of(number: int, attempts: tuple[AttemptStory, ...]) -> int | None:
    """Index of an attempt, searched from the newest: their numbers rise."""
    for at in range(len(attempts) - 1, -1, -1):
        if attempts[at].number <= number:
            return at if attempts[at].number == number else None
    return None


def _shared(fact: AttemptStarted | AttemptEnded | ProgressMade) -> dict[str, Any]:
    """The fields of a fact that a story has under the same names."""
    return {name: getattr(fact, name) for name in fact.__struct_fields__ if name != "attempt"}


def _ended(attempts: tuple[AttemptStory, ...], record: Record, fact: AttemptEnded) -> tuple[AttemptStory, ...]:
    at = _place_of(fact.attempt, attempts)
    if at is None:
        return attempts
    ended = msgspec.structs.replace(attempts[at], ended_t=record.t, **_shared(fact))
    return (*attempts[:at], ended, *attempts[at + 1 :])
