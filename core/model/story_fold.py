"""The fold over the journal: ``apply(story, record) -> story``."""

from collections.abc import Iterable
from typing import Any, assert_never

from msgspec.structs import replace

from . import fact as facts
from . import story as stories
from .checkpoint import Checkpoint, age_order
from .decision import Decision, EndWatch, EvaluateCheckpoint, NotifyPeople, Record
from .fact import Outcome
from .preset import ALLOWED_AGAIN, FailedRung
from .run import AttemptStory, OutputPlace


def _without(known: dict[str, Any], *paths: str) -> dict[str, Any]:
    return {path: other for path, other in known.items() if path not in paths}


NOTICES = 50
PHASES = 2000
ACTIONS = 400


def apply(story: stories.RunStory, record: Record) -> stories.RunStory:
    """Return the story with one more record. Total: every record of a known version can be applied in any state."""
    return apply_all(story, (record,))


def apply_all(story: stories.RunStory, records: Iterable[Record]) -> stories.RunStory:
    """Return the story with more records, oldest first, in a time that is in proportion to their number.

    Of progress, which is most of a journal, only the newest counts, and nothing else of a story follows from it.
    """
    known = {each.path: each for each in story.checkpoints}  # as there may be thousands, these change in place
    story = replace(story, checkpoint_times=dict(story.checkpoint_times), origins=dict(story.origins))
    t, seq, progressed = story.t, story.seq, None
    for record in records:
        t, seq = max(t, record.t), record.seq
        if isinstance(record.fact, facts.ProgressMade):
            progressed = record
        elif record.fact is not None:
            story = _apply_fact(story, record, record.fact, known)
        elif record.decision is not None:
            story = _apply_decision(story, record, record.decision)
        elif record.outcome is not None:
            story = _with_outcome(story, record.t, record.outcome)
    if progressed is not None and progressed.fact is not None:
        story = _apply_fact(story, progressed, progressed.fact, known)
    found = tuple(known.values())
    if found != story.checkpoints:
        found = tuple(sorted(found, key=lambda c: age_order(c.name, c.mtime, c.step, c.epoch)))
    return replace(story, t=t, seq=seq, checkpoints=found)


def _apply_fact(
    story: stories.RunStory, record: Record, fact: facts.Fact, known: dict[str, Checkpoint]
) -> stories.RunStory:
    match fact:
        case facts.RunCreated():
            return replace(
                story,
                run=fact,
                wall0=record.wall - record.t,
                profile=fact.profile,
                budget_max=fact.max_restarts,
                act=fact.act,
                act_settings=fact.act,
            )
        case facts.ResumeWayKnown():
            return story if story.run is None else replace(story, run=replace(story.run, resume=fact.way))
        case facts.SupervisorEnded():
            return _with_notice(story, fact.why)
        case facts.StateChanged():
            spans = (*story.states, stories.StateSpan(t=record.t, state=fact.state))[-stories.STATES :]
            return replace(
                story,
                state=fact.state,
                state_t=record.t,
                state_reason=fact.reason,
                state_why=fact.why,
                until_t=fact.until_t,
                states=spans,
            )
        case facts.AttemptStarted():
            new = AttemptStory(number=fact.attempt, t=record.t, wall=record.wall, **_shared(fact))
            begun = _with_attempt(story, fact.attempt, new, adopted=fact.adopted, pid=fact.pid)
            return replace(begun, profile=fact.profile)
        case facts.AttemptEnded():
            return _with_attempt(story, fact.attempt, ended_t=record.t, **_shared(fact))
        case facts.ProgressMade():
            return replace(story, progress_attempt=fact.attempt, **_shared(fact))
        case facts.PhaseChanged():
            return replace(story, phases=(*story.phases, stories.At(t=record.t, fact=fact))[-PHASES:])
        case facts.CheckpointKnown():
            return _with_checkpoint(story, record.t, fact, known)
        case facts.OutputKnown():
            told = _with_notice(story, f"saves to {fact.folder}: {fact.why}")
            return replace(told, outputs=(*story.outputs, OutputPlace(folder=fact.folder, why=fact.why)))
        case facts.CheckpointsSetAside():
            rest = _without(story.set_aside, *fact.paths)
            return replace(story, set_aside=rest | (dict.fromkeys(fact.paths, fact) if fact.why else {}))
        case facts.IncidentOpened():
            return _with_notice(replace(story, incidents=(*story.incidents, fact.incident)), fact.incident.reason)
        case facts.IncidentUpdated():
            incidents = tuple(fact.incident if i.id == fact.incident.id else i for i in story.incidents)
            return replace(story, incidents=incidents)
        case facts.HealthChanged():
            return replace(story, health={**story.health, fact.metric: fact})
        case facts.BudgetChanged():
            return story.charged(fact.used, fact.max)
        case facts.ProfileChanged():
            return replace(
                story,
                profile=fact.profile,
                profile_pending=fact.pending,
                profile_switches=(*story.profile_switches, stories.At(t=record.t, fact=fact)),
                failed_rungs=story.failed_rungs if fact.failed is None else _with_failed(story, fact.failed),
            )
        case facts.RampMoved():
            told = _with_notice(story, f"{fact.before} → {fact.after}: {fact.why}")
            step = stories.At(t=record.t, fact=fact)
            return replace(told, ramp=(*story.ramp, step), failed_rungs=_failed(story, fact))
        case facts.RemedyApplied():
            waiting = tuple(p for p in story.proposals if p.name != fact.name)
            profile = [] if fact.profile is None else [f"profile {fact.profile}"]
            changed = ", ".join([*(f"{c.key} {c.before} -> {c.after}" for c in fact.changes), *profile])
            noticed = _with_notice(story, f"{fact.title}: {changed}")
            return replace(noticed, remedies=(*story.remedies, fact), proposals=waiting)
        case facts.RemedyProposed():
            return replace(story, proposals=(*(p for p in story.proposals if p.name != fact.name), fact))
        case facts.RemediesDropped():
            kept = tuple(r for r in story.remedies if r.name not in fact.names)
            return _with_notice(replace(story, remedies=kept), f"{', '.join(fact.names)} taken back: {fact.why}")
        case facts.ActionWithheld():
            held = stories.At(t=record.t, fact=fact)
            question = held if fact.waits else story.question
            told = replace(story, withheld=(*story.withheld, held)[-ACTIONS:], question=question)
            return _with_notice(told, f"would have {fact.sentence}")
        case facts.QuestionClosed():
            return replace(story, question=None)
        case facts.ActChanged():
            return replace(story, act=fact.act, act_settings=fact.settings)
        case facts.CommandReceived():
            return _with_notice(story, f"{fact.verb} by {fact.by}" + (f": {fact.detail}" if fact.detail else ""))
        case facts.MetricFilesKnown():
            return replace(story, metric_files=(*(f for f in story.metric_files if f.folder != fact.folder), fact))
        case facts.CheckpointEvaluated(evaluation=found):
            return replace(
                story,
                evaluations={**_without(story.evaluations, found.path), found.path: found},
                evaluations_begun=_without(story.evaluations_begun, found.path),
            )
        case facts.NothingSeen():
            return replace(story, unseen=(*story.unseen, fact)[-stories.STATES :])
        case facts.Note():
            return _with_notice(story, fact.text)
        case facts.SupervisorStarted() | facts.JudgeSnapshot():
            return story
        case _:
            assert_never(fact)


def _with_checkpoint(
    story: stories.RunStory, t: float, fact: facts.CheckpointKnown, known: dict[str, Checkpoint]
) -> stories.RunStory:
    new = fact.checkpoint
    before = known.pop(new.path, None)
    story.origins.pop(new.path, None)
    if fact.removed:
        story.checkpoint_times.pop(new.path, None)
    else:
        known[new.path] = new
        story.checkpoint_times.setdefault(new.path, t)
        if fact.origin is not None:
            story.origins[new.path] = stories.CheckpointOrigin(origin=fact.origin, t=fact.written_t)
    if fact.removed or (before is not None and before.mtime != new.mtime):
        return replace(story, set_aside=_without(story.set_aside, new.path))
    return story


def _failed(story: stories.RunStory, fact: facts.RampMoved) -> tuple[FailedRung, ...]:
    if fact.direction == ALLOWED_AGAIN:
        return tuple(rung for rung in story.failed_rungs if rung.profile != fact.after)
    if fact.direction != "back":
        return story.failed_rungs
    failed = FailedRung(profile=fact.before, ran_s=fact.ran_s, failure=fact.failure or "", step=fact.step)
    return _with_failed(story, failed)


def _with_failed(story: stories.RunStory, failed: FailedRung) -> tuple[FailedRung, ...]:
    return (*(rung for rung in story.failed_rungs if rung.profile != failed.profile), failed)


def _apply_decision(story: stories.RunStory, record: Record, decision: Decision) -> stories.RunStory:
    if isinstance(decision, NotifyPeople):
        return story
    action = stories.ActionStory(
        id=decision.id,
        t=record.t,
        kind=str(type(decision).__struct_config__.tag),
        reason=decision.reason,
        incident=decision.incident,
    )
    updated = replace(story, actions=(*story.actions, action)[-ACTIONS:])
    if isinstance(decision, EvaluateCheckpoint):
        updated = _begun(updated, record.t, decision)
    return _with_notice(updated, decision.reason)


def _begun(story: stories.RunStory, t: float, decision: EvaluateCheckpoint) -> stories.RunStory:
    before = story.evaluations_begun.get(decision.path)
    times = 1 + (before.times if before is not None and before.mtime == decision.mtime else 0)
    begun = stories.EvaluationBegun(mtime=decision.mtime, times=times, t=t)
    return replace(story, evaluations_begun={**story.evaluations_begun, decision.path: begun})


def _with_outcome(story: stories.RunStory, t: float, outcome: Outcome) -> stories.RunStory:
    for at in range(len(story.actions) - 1, -1, -1):
        known = story.actions[at]
        if known.id == outcome.decision and known.done_t is None:
            done = replace(known, done_t=t, ok=outcome.ok, detail=outcome.detail)
            return replace(story, actions=(*story.actions[:at], done, *story.actions[at + 1 :]))
    return story


def _with_notice(story: stories.RunStory, text: str) -> stories.RunStory:
    return replace(story, notices=(*story.notices, text)[-NOTICES:])


def _with_attempt(
    story: stories.RunStory, number: int, new: AttemptStory | None = None, **fields: Any
) -> stories.RunStory:
    """The story with these fields of an attempt; with ``new`` if there is none of this number.

    Searched from the newest: their numbers rise.
    """
    attempts = story.attempts
    for at in range(len(attempts) - 1, -1, -1):
        if attempts[at].number == number:
            return replace(story, attempts=(*attempts[:at], replace(attempts[at], **fields), *attempts[at + 1 :]))
        if attempts[at].number < number:
            break
    return story if new is None else replace(story, attempts=(*attempts, new))


def _shared(fact: facts.AttemptStarted | facts.AttemptEnded | facts.ProgressMade) -> dict[str, Any]:
    """The fields of a fact that a story has under the same names."""
    return {name: getattr(fact, name) for name in fact.__struct_fields__ if name != "attempt"}


def told_one_by_one(record: Record, untold: set[int]) -> bool:
    """Whether a report needs this record: an action for an incident or its result, a command, its refusal, a ramp move.

    ``untold``: ids of decisions that are not told; grows. The result of a decision that was not seen is told: it may be
    one of those before.
    """
    decision, outcome = record.decision, record.outcome
    if decision is not None:
        if decision.incident is not None and not isinstance(decision, NotifyPeople | EndWatch):
            return True
        untold.add(decision.id)
        return False
    if outcome is not None:
        return outcome.decision not in untold
    refusal = isinstance(record.fact, facts.Note) and record.fact.about == "refusal"
    return refusal or isinstance(record.fact, facts.CommandReceived | facts.RampMoved)
