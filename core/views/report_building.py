"""Builds a report from a run's story, its journal and facts about the machine. Pure."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise, zip_longest
from pathlib import Path

import msgspec

from ..model.decision import Record
from ..model.fact import CommandReceived, Note, RampMoved
from ..model.preset import Change
from ..model.redact import Redaction, url_secrets
from ..model.run import RunSpec
from ..model.story import Situation, Summary
from ..views import quantity
from . import checkpoint_list
from .checkpoint_list import checkpoint_rows, scores_of
from .incidents import evidence_words, lasted_s, title_now
from .length_words import by_words
from .report import AttemptRow, Away, CheckpointRow, IncidentRow, Report, ReportSources, state_words, targets
from .run_summary import is_over, summarise, time_lost
from .state.concerns import DOUBTS, next_by_itself, reason_of
from .state.lost_time import LostTime, last_step_of, steps_redone
from .state.run_progress import live_progress, overall_step
from .words import STATES, change_words, would_have


def build_report(now: Situation, sources: ReportSources, since_wall: float | None = None) -> Report:
    """Build the report; every part of it may be unknown. ``since_wall``: when a person last looked, epoch seconds."""
    story, said = now.story, summarise(now, sources.spec.name)
    began_t = story.attempts[0].t if story.attempts else None
    ended_t = story.state_t if is_over(story) else None
    incidents = tuple(_incidents(now, sources.particulars))
    known, in_log = overall_step(now), sources.log_steps.get(len(story.attempts) and story.attempts[-1].number)
    step = known if in_log is None else max(known or 0, in_log + story.step_offset)
    total = said.position.total_steps
    redone = steps_redone(story, sources.log_steps)
    lost = time_lost(now, redone)
    changes = tuple(_changes(now, sources.particulars))
    made: Report = _redaction(sources.spec).value(
        Report(
            run=sources.spec.name,
            id=sources.spec.id,
            state=story.state,
            reason=reason_of(story),
            unproven=story.state_why.kind == "unproven",
            summary="",
            written_wall=now.now_wall,
            began_wall=None if began_t is None else story.wall0 + began_t,
            ended_wall=None if ended_t is None else story.wall0 + ended_t,
            wall_s=None if began_t is None else max(0.0, (now.now_t if ended_t is None else ended_t) - began_t),
            ettr=None if lost is None else lost.ettr,
            of_perfect=None if lost is None else lost.of_perfect,
            lost=lost,
            last_seen=said.last_seen,
            step=step,
            total_steps=None
            if step is not None and total is not None and step > total
            else total,  # of another counter
            total_by=said.position.eta_by,
            eta_s=said.position.eta_s,
            loss=sources.loss,
            loss_is_nan=said.nan,
            metrics=sources.metrics,
            targets=targets(sources.usage),
            restarts=max(0, len(story.attempts) - 1),
            waiting=tuple(need.text for need in said.needs if need.is_due),
            needs=said.needs,
            away=None if since_wall is None else _away(now, since_wall, incidents),
            withheld=tuple(_withheld(now)),
            attempts=tuple(_attempts(now, sources)),
            incidents=incidents,
            checkpoints=tuple(_checkpoint(row) for row in checkpoint_rows(story.checkpoints[::-1], {}, 0.0, story)),
            scores=scores_of(story),
            changes=tuple(text for _, text in changes),
            change_walls=tuple(wall for wall, _ in changes),
            environment=tuple(_environment(now, sources)),
        )
    )
    newest = max((a.number for a in story.attempts), default=0)
    followed = [i for i in story.incidents if i.kind in {"crash", "hang"} and not i.open and i.attempt < newest]
    lost_steps = redone or (None if any(i.lost_steps is None for i in followed) else 0)
    survived = any(a.how == "finished" and a.number in sources.log_ends for a in story.attempts)
    sentence = summary_sentence(made, len(followed), lost_steps, diverged=said.diverged, survived=survived)
    return msgspec.structs.replace(made, summary=sentence)


def with_machine(report: Report, machine: Mapping[str, str], spec: RunSpec) -> Report:
    """The report with facts about driver, kernel … by name, for support."""
    facts: tuple[tuple[str, str], ...] = _redaction(spec).value(tuple(machine.items()))
    return msgspec.structs.replace(report, environment=(*report.environment, *facts))


def _redaction(spec: RunSpec) -> Redaction:
    return Redaction(spec.env, url_secrets(spec.settings.notify.urls))


def _away(now: Situation, since_wall: float, incidents: Sequence[IncidentRow]) -> Away:
    """Steps that were repeated because of what happened before do not count."""
    since_t = since_wall - now.story.wall0
    return Away(
        since_wall=since_wall,
        wall_s=max(0.0, now.now_wall - since_wall),
        lost=time_lost(now, sum(i.lost_steps or 0 for i in incidents if i.wall >= since_wall), since_t),
        restarts=sum(a.t >= since_t for a in now.story.attempts[1:]),
    )


def _withheld(now: Situation) -> Iterator[str]:
    for held in now.story.withheld:
        why = f": {held.fact.why}" if held.fact.why else ""
        price = f" ({held.fact.price})" if held.fact.price else ""
        yield f"{would_have(held, now.story.wall0, now.now_wall)}{why}{price}"


def _attempts(now: Situation, sources: ReportSources) -> Iterator[AttemptRow]:
    story = now.story
    for a, later in zip_longest(story.attempts, story.attempts[1:]):
        ends, ended = a.ended_t, a.how or "ended"
        status = f"exit code {a.code}" if a.code is not None else None if a.signal is None else f"signal {a.signal}"
        ended += f" ({status})" if status else ""
        if ends is None:  # of an older one, no supervisor saw its end
            ends = later.t if later is not None else story.state_t if is_over(story) else now.now_t
            ended = "goes on" if later is None and story.state != "interrupted" else "unseen"
        began = "adopted" if a.adopted else "the beginning"
        if a.resume_from is not None:
            step = "" if a.resume_step is None else f" (step {quantity.count(a.resume_step)})"
            began = a.resume_from.rstrip("/").rpartition("/")[2] + step
        if a.may_take:
            began = f"as the trainer chose: {began}, or {a.may_take}, which is bad"
        last, going = last_step_of(a, sources.log_steps), later is None and story.progress_attempt == a.number
        yield AttemptRow(
            number=a.number,
            began_wall=story.wall0 + a.t,
            ran_s=max(0.0, ends - a.t),
            began_from=began,
            ended=ended,
            last_step=live_progress(now).any_step if last is None and going else last,
            adopted=a.adopted,
            changes=tuple(map(change_words, a.changes)),
            log=a.log,
            log_end=sources.log_ends.get(a.number, ()),
        )


def _incidents(now: Situation, particulars: Sequence[Record]) -> Iterator[IncidentRow]:
    """In the order of time. What follows by itself is said once, also if it ends several: of the newest."""
    story, done = now.story, _done(particulars, now.now_wall)
    followed = next((i for i in reversed(story.incidents) if next_by_itself(i, now)), None)
    sec_per_step = live_progress(now).sec_per_step
    for i in sorted(story.incidents, key=lambda i: i.t):
        down_s, over_t = None, i.closed_t
        suspended = i.kind == "stall" and i.detect_s is not None
        if not suspended and i.lost_steps is None:  # no automatic restart followed
            over_t = next((a.t for a in story.attempts if a.t > i.t), None)
        if (suspended or i.kind in {"crash", "hang"}) and i.closed_t is not None and over_t is not None:
            down_s = lasted_s(i, over_t)
        follows = f": {next_by_itself(i, now)}" if i is followed else ""
        yield IncidentRow(
            id=i.id,
            wall=i.wall,
            kind=i.kind,
            class_=i.class_,
            title=title_now(i, now),
            seen=i.reason,
            cause=i.explanation,
            evidence=evidence_words(i),
            did=tuple(done.get(i.id, ())),
            ending=i.ending or (f"still open{follows}" if i.open else "closed"),
            open=i.open,
            ended_by=i.ended_by,
            closed_wall=None if i.closed_t is None else story.wall0 + i.closed_t,
            lost_steps=i.lost_steps,
            lost_s=None if i.lost_steps is None or sec_per_step is None else i.lost_steps * sec_per_step,
            down_s=down_s,
        )


def _done(particulars: Sequence[Record], now_wall: float) -> dict[int, list[str]]:
    """The actions of each incident (by its number) and their results."""
    done: dict[int, list[str]] = {}
    results = {record.outcome.decision: record.outcome for record in particulars if record.outcome is not None}
    for record in particulars:
        action = record.decision
        if action is None or action.incident is None:
            continue
        result = results.get(action.id)
        how = ""
        if result is not None:
            how = f": {result.detail}" if result.detail else ""
            how = how if result.ok else f" ({'cannot tell' if result.undecided else 'failed'}{how})"
        text = f"{quantity.clock(record.wall, now_wall, seconds=True)} {action.reason}{how}"
        done.setdefault(action.incident, []).append(text)
    return done


def _checkpoint(row: checkpoint_list.CheckpointRow) -> CheckpointRow:
    c = row.judged
    return CheckpointRow(
        name=c.name,
        path=c.path,
        position=row.step,
        size_bytes=c.size_bytes,
        mtime=c.mtime,
        verdict=c.verdict,
        reason="; ".join(filter(None, (DOUBTS[row.doubt], c.reason))),
        good=c.verdict == "complete",
        unknown=not c.understood,
        score=row.score,
    )


def _changes(now: Situation, particulars: Sequence[Record]) -> Iterator[tuple[float, str]]:
    """When (epoch seconds), and what was changed by whom; oldest first."""
    told: list[tuple[float, str]] = []
    before: tuple[Change, ...] = ()
    for attempt in now.story.attempts:
        new = [c for c in attempt.changes if c not in before and c.of != "resume"]  # its row has the checkpoint
        told += [(attempt.t, f"attempt {attempt.number}: {change_words(c)}") for c in new]
        before = attempt.changes
        if (script := attempt.script) is not None:
            changed = f"{Path(script.path).name} changed after attempt {script.attempt} had begun"
            at = quantity.clock(script.mtime, now.now_wall, seconds=True)
            told.append((attempt.t, f"attempt {attempt.number}: {changed} (time of the file: {at})"))
    for a, b in pairwise((None, *now.story.attempts)):
        if a is not None and b is not None and a.profile != b.profile:
            told.append((b.t, f"attempt {b.number}: profile {a.profile or 'none'} → {b.profile or 'none'}"))
    commands: list[tuple[float, str]] = []
    for record in particulars:
        said = record.fact
        if isinstance(said, CommandReceived):
            commands.append((record.t, f"{said.by}: {said.verb}" + (f" ({said.detail})" if said.detail else "")))
        elif isinstance(said, Note) and commands:  # it was refused, or there was nothing to do
            commands.pop()
        elif isinstance(said, RampMoved):
            told.append((record.t, f"ramp {said.direction}: {said.before} → {said.after} ({said.why})"))
    for t, text in sorted([*told, *commands], key=lambda pair: pair[0]):
        wall = now.story.wall0 + t
        yield wall, f"{quantity.clock(wall, now.now_wall, seconds=True)} {text}"


def _environment(now: Situation, sources: ReportSources) -> Iterator[tuple[str, str]]:
    spec, hide, gpu = sources.spec, _redaction(sources.spec), now.gpu
    yield "command", shlex.join(hide.words(spec.command))
    yield "working folder", spec.cwd
    yield "preset", spec.preset
    gpus = [f"{g.index}: {g.name}, {quantity.memory(g.mem_total_bytes)}" for g in (gpu.gpus if gpu else ()) if g.name]
    simulated = " (simulated)" if gpu is not None and gpu.simulated else ""
    ram = None if now.host is None else now.host.ram_total_bytes
    for name, value in (
        ("config", spec.config),
        ("output folder", spec.output_dir),
        ("project", spec.project),
        ("environment", ", ".join(hide.environment(spec.env))),
        ("GPU", ", ".join(gpus) + simulated if gpus else gpu and gpu.trouble),
        ("RAM", None if ram is None else quantity.memory(ram)),
    ):
        if value:
            yield name, value


# The report in a few lines: what a person reads first in the morning.


MOST_INCIDENTS = 8
MOST_CHANGES = 8


def summary(report: Report) -> Summary:
    """State, time, what happened in order, what was changed, loss then and now, next end, what needs a person."""
    step = "" if report.step is None else f" · step {quantity.out_of(report.step, report.total_steps)}"
    at = "" if report.ended_wall is None else f" {quantity.clock(report.ended_wall, report.written_wall)}"
    return Summary(
        title=f"{report.run}: {state_words(report)}{at}{step}", lines=tuple(_lines(report)), needs=report.needs
    )


def short_report(report: Report) -> str:
    said = summary(report)
    ends = [f"{'needs you: ' if need.is_due else ''}{need.text}" for need in said.needs]
    ends += [] if any(need.is_due for need in said.needs) else ["nothing needs you"]
    return "\n".join((said.title, *(f"  {line}" for line in (*said.lines, *ends)))) + "\n"


def _lines(report: Report) -> Iterator[str]:
    away, since = report.away, 0.0 if report.away is None else report.away.since_wall
    if away is not None:
        yield _went(f"away {quantity.duration(away.wall_s)}", away.lost, away.restarts)
    elif report.wall_s is not None:
        yield _went(f"{quantity.duration(report.wall_s)} in all", report.lost, report.restarts)
    if report.unproven:
        yield report.reason
    found = [i for i in report.incidents if i.open or max(i.wall, i.closed_wall or 0.0) >= since]
    found = [i for i in found if not (i.kind == "quiet" and i.ended_by == "hang")]
    named = frozenset(need.incident for need in report.needs)
    told: list[str] = []
    for i in found:
        if not (i.open and i.id in named):
            what = i.title if i.kind in {"crash", "hang"} and i.class_ != "unknown" else i.seen
            end = i.ending.removeprefix("still ") if i.open else i.ending.partition(":")[0] or "closed"
            again = "" if not i.lost_steps else f", {quantity.plural(i.lost_steps, 'step')} again"
            told.append(f"{quantity.clock(i.wall, report.written_wall)}  {i.kind}: {what} → {end}{again}")
    walls = report.change_walls or [report.written_wall] * len(report.changes)
    made = zip(walls, report.changes, strict=True)
    changes = [f"changed: {text}" for wall, text in made if wall >= since]
    for lines, most, what in ((told, MOST_INCIDENTS, "earlier incident"), (changes, MOST_CHANGES, "earlier change")):
        if len(lines) > most:
            yield f"{quantity.plural(len(lines) - most, what)} not shown here"
        yield from lines[-most:]
    if away is not None and report.wall_s and not (found or report.unproven or any(n.is_due for n in report.needs)):
        yield "nothing went wrong"
    if report.loss.first is not None and report.loss.last is not None:
        last = "NaN" if report.loss_is_nan else quantity.three_digits(report.loss.last)
        yield f"loss {quantity.three_digits(report.loss.first)} → {last}"
    if report.scores:
        yield f"checkpoints: {report.scores}"
    if report.eta_s is not None:
        at = quantity.clock(report.written_wall + report.eta_s, report.written_wall)
        yield f"done about {at}{by_words(report.total_by)}"


def _went(all_of_it: str, lost: LostTime | None, restarts: int) -> str:
    """``8 h 02 m in all, trained 7 h 31 m, lost 11 min (3 restarts)``; what is unknown is left out."""
    parts = [all_of_it]
    if lost is not None and lost.trained_s is not None:
        parts.append(f"trained {quantity.duration(lost.trained_s)}")
        silent, unknown = ("no step for", lost.silent_s), ("not known for", lost.unknown_s)
        for what, seconds in (("lost", lost.lost_s), silent, unknown, ("idle after its finish for", lost.finished_s)):
            parts += [f"{what} {quantity.duration(seconds)}"] if seconds >= 1 else []
    return ", ".join(parts) + (f" ({quantity.plural(restarts, 'restart')})" if restarts else "")


# The summary of a report in one sentence: duration, progress, trouble and open decisions.


def summary_sentence(
    r: Report, recovered: int, lost_steps: int | None, *, diverged: bool, survived: bool = False
) -> str:
    """The sentence; unknown parts are left out.

    ``recovered``: crashes and hangs that another attempt followed; ``diverged``: the loss is, or was at the end.
    ``survived``: the log of an attempt that finished ends with an exception, and what the trainer printed after it.
    """
    clauses = [f"It was {r.last_seen}" if r.last_seen else STATES[r.state].opening]
    if r.wall_s is not None and not r.last_seen:
        clauses[0] += f" after {quantity.duration(r.wall_s)}"
    if r.step is not None:
        clauses[0] += f" at step {quantity.out_of(r.step, r.total_steps)}"
    if r.unproven:
        clauses.append("nothing in the log says that this was the end")
    counts = {word: sum(i.kind == kind for i in r.incidents) for kind, word in (("crash", "crashed"), ("hang", "hung"))}
    times = {1: "once", 2: "twice"}
    if troubles := sum(counts.values()):
        said = " and ".join(f"{word} {times.get(n, f'{n} times')}" for word, n in counts.items() if n)
        how_often = times.get(recovered, f"{recovered} times") if recovered < troubles else "each time"
        again = "" if recovered == troubles == 1 else f" {how_often}"
        clauses.append(f"it {said}" + (f" and was restarted{again}" if recovered else ""))
    elif r.wall_s is not None and not (r.loss_is_nan or diverged or r.unproven or any(need.is_due for need in r.needs)):
        clauses.append("its log shows an exception that it survived (below)" if survived else "nothing went wrong")
    if r.loss_is_nan or diverged:
        clauses.append("its loss is NaN" if r.loss_is_nan else "its loss diverged")
    again = "no step was lost" if lost_steps == 0 else "how many steps were lost is not known"
    if lost_steps:
        again = f"{quantity.plural(lost_steps, 'step')} had to be repeated"
    if recovered and r.lost is not None and r.lost.trained_s is not None:
        again += f", {quantity.duration(r.lost.lost_s)} lost in all"
    if recovered or lost_steps:
        clauses.append(again)
    waiting = sum(need.is_due for need in r.needs)
    number = {0: "nothing needs", 1: "one thing needs"}.get(waiting, f"{waiting} things need")
    return "; ".join([*clauses, f"{number} your decision"]) + "."
