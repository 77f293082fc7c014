"""A journal record as one line for people: what ``events`` and ``--headless`` print."""

import time
from typing import assert_never

from trainwatch.core.model import fact as facts
from trainwatch.core.model.attempt import Incident
from trainwatch.core.model.change import ALLOWED_AGAIN
from trainwatch.core.model.checkpoint import score_words
from trainwatch.core.model.decision import EndWatch, NotifyPeople
from trainwatch.core.model.record import Record
from trainwatch.core.model.suggestion import typed
from trainwatch.core.model.text import printable, printable_lines
from trainwatch.core.model.verdict_words import verdict_word
from trainwatch.core.views.length_words import resume_line
from trainwatch.core.views.metrics import view_command


def event_line(record: Record, run: str | None = None) -> str | None:
    """Time of day, then one sentence; None for records that only machines read. ``run``: the id, for commands in it."""
    text = _text(record, () if run is None else (run,))
    if text is None:
        return None
    return f"{time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(record.wall))}  {printable_lines(text)}"


def _text(record: Record, run: tuple[str, ...]) -> str | None:
    if record.fact is not None:
        return _fact_text(record.fact, run)
    if record.decision is not None:
        if isinstance(record.decision, NotifyPeople | EndWatch):
            return None
        name = str(record.decision.__struct_config__.tag)
        return f"-> {name.replace('_', ' ')}: {record.decision.reason}"
    if record.outcome is not None:
        if record.outcome.action == "notify" and record.outcome.ok:
            return None
        done = "done" if record.outcome.ok else "cannot tell" if record.outcome.undecided else "FAILED"
        detail = f": {record.outcome.detail}" if record.outcome.detail else ""
        return f"   {record.outcome.action.replace('_', ' ')} {done}{detail}"
    return None


def _fact_text(fact: facts.Fact, run: tuple[str, ...]) -> str | None:
    match fact:
        case facts.RunCreated():
            return printable(f"run {fact.name} created: {' '.join(fact.command)}")
        case facts.ResumeWayKnown():
            return printable(f"from now on: {resume_line(fact.way)}")
        case facts.SupervisorStarted():
            adopted = f", adopts attempt {fact.adopted_attempt}" if fact.adopted_attempt else ""
            return f"supervisor {fact.pid} watches{adopted}"
        case facts.SupervisorEnded():
            return f"supervisor {fact.pid} ended: {fact.why}"
        case facts.StateChanged():
            return f"{fact.state.replace('_', ' ')}" + (f": {fact.reason}" if fact.reason else "")
        case facts.AttemptStarted():
            step = "" if fact.resume_step is None else f" (step {fact.resume_step})"
            start = f"from {fact.resume_from}{step}" if fact.resume_from else "from the start"
            return f"attempt {fact.attempt} runs, pid {fact.pid}, {start}"
        case facts.AttemptEnded():
            status = f"exit code {fact.code}" if fact.code is not None else f"signal {_known(fact.signal)}"
            return f"attempt {fact.attempt} ended ({fact.how}, {status}), last step {_known(fact.last_step)}"
        case facts.ProgressMade() | facts.JudgeSnapshot() | facts.BudgetChanged() | facts.NothingSeen():
            return None
        case facts.PhaseChanged(phase="train" | "save"):
            return None  # every save would be two lines; `--json` and the timeline have them
        case facts.PhaseChanged():
            return f"phase {fact.phase}" + (f": {fact.why}" if fact.why else "")
        case facts.CheckpointKnown():
            known = fact.checkpoint
            if fact.removed:
                return f"checkpoint {known.name} removed"
            why = f" ({known.reason})" if known.reason else ""
            at = (
                f"step {known.step}"
                if known.step is not None
                else f"epoch {known.epoch}"
                if known.epoch is not None
                else ""
            )
            return f"checkpoint {known.name}: {verdict_word(known.verdict)}{why}{f', {at}' if at else ''}"
        case facts.OutputKnown():
            return f"output folder: {fact.folder} ({fact.why})"
        case facts.CheckpointsSetAside():
            names = ", ".join(path.rstrip("/").rpartition("/")[2] for path in fact.paths)
            return f"no resume point: {names}: {fact.why}" if fact.why else f"a resume point again: {names}"
        case facts.IncidentOpened():
            return "\n".join(_incident_lines(fact.incident))
        case facts.IncidentUpdated():
            return None if fact.incident.open else f"incident {fact.incident.id} closed: {fact.incident.ending}"
        case facts.HealthChanged(before="unknown", level="safe" | "underused"):
            return None
        case facts.HealthChanged():
            value = "–" if fact.value is None else f"{fact.value:.3g}"
            return f"{fact.metric} is {fact.level} ({value} {fact.unit})"
        case facts.ProfileChanged():
            return f"profile {fact.profile or '–'}" + (" at the next start" if fact.pending else "") + f": {fact.why}"
        case facts.RampMoved():
            direction = "allowed again" if fact.direction == ALLOWED_AGAIN else fact.direction
            return f"RAMP {direction}: {fact.before} -> {fact.after}: {fact.why}"
        case facts.RemedyApplied():
            return f"REMEDY {fact.name}: {_changed(fact)} ({fact.title}; cost: {fact.cost})"
        case facts.RemedyProposed():
            return (
                f"proposed {fact.name}: {_changed(fact)} ({fact.title}; cost: {fact.cost}); {fact.why}: "
                f"`{typed('resume', *run, '--with', fact.name)}`"
            )
        case facts.RemediesDropped():
            return f"remedies taken back ({', '.join(fact.names)}): {fact.why}"
        case facts.ActionWithheld():
            told = f"{fact.question[:1].upper()}{fact.question[1:]}" if fact.asks else f"would have {fact.sentence}"
            price = f" ({fact.price})" if fact.price else ""
            return f"{'QUESTION' if fact.asks else 'WITHHELD'}: {told}{price}; because: {fact.why}"
        case facts.QuestionClosed():
            return f"nothing waits for an answer any more: {fact.why}"
        case facts.ActChanged():
            return f'act = "{fact.act}" from now on, by {fact.by}'
        case facts.CommandReceived():
            return f"{fact.by} requests: {fact.verb}" + (f" ({fact.detail})" if fact.detail else "")
        case facts.MetricFilesKnown():
            view = view_command(fact.source, fact.folder)
            return f"metrics in {fact.source} files in {fact.folder}" + (f": view them with `{view}`" if view else "")
        case facts.CheckpointEvaluated(evaluation=found):
            name = found.path.rstrip("/").rpartition("/")[2]
            return f"evaluated {name}: {score_words(found)}, in {found.took_s:.0f} s on {found.place or 'the CPU'}"
        case facts.Note():
            return fact.text
        case _:
            assert_never(fact)


def _changed(fact: facts.RemedyApplied | facts.RemedyProposed) -> str:
    said = [f"{c.key} {_known(c.before)} -> {c.after}" for c in fact.changes]
    return ", ".join(said if fact.profile is None else [*said, f"profile {fact.profile}"])


def _incident_lines(incident: Incident) -> list[str]:
    lines = [f"INCIDENT {incident.id}: {incident.kind} {incident.class_}: {incident.reason}"]
    for evidence in incident.evidence:
        where = f" (log line {evidence.line})" if evidence.line else ""
        lines.append(f"{'':21}evidence: {evidence.what}{where}")
    return lines


def _known(value: object) -> object:
    return "–" if value is None else value
