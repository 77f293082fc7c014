"""A journal's records as lines for people, and a run that is supervised in this process with its lines."""

import math
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, assert_never

from trainwatch.core.app.errors import ExitCode
from trainwatch.core.model import fact as facts
from trainwatch.core.model.checkpoint import score_words
from trainwatch.core.model.decision import EndWatch, NotifyPeople, Record
from trainwatch.core.model.preset import ALLOWED_AGAIN
from trainwatch.core.model.story import RunStory
from trainwatch.core.model.text import printable_lines, typed, verdict_word
from trainwatch.core.views.length_words import resume_line
from trainwatch.core.views.metrics import view_command
from trainwatch.core.views.quantity import clock
from trainwatch.core.views.state.concerns import reason_of

from .output import outlive_reader, print_json, printable, warn

if TYPE_CHECKING:
    from trainwatch.core.app.runs.known_runs import RunDirectory


def show(record: Record, run: str, *, as_json: bool) -> None:
    """Print one record, as JSON or as a line of text. Some records have no line."""
    if as_json:
        print_json(record)
    elif line := event_line(record, run):
        print(line, flush=True)


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
            start += f", or from {fact.may_take}, as the trainer chooses" if fact.may_take else ""
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
            at = [f", {unit} {n}" for unit, n in (("step", known.step), ("epoch", known.epoch)) if n is not None]
            return f"checkpoint {known.name}: {verdict_word(known.verdict)}{why}{''.join(at[:1])}"
        case facts.OutputKnown():
            return f"output folder: {fact.folder} ({fact.why})"
        case facts.CheckpointsSetAside():
            names = ", ".join(path.rstrip("/").rpartition("/")[2] for path in fact.paths)
            return f"no resume point: {names}: {fact.why}" if fact.why else f"a resume point again: {names}"
        case facts.IncidentOpened(incident=new):
            seen = (f"{each.what}{f' (log line {each.line})' if each.line else ''}" for each in new.evidence)
            lines = (
                f"INCIDENT {new.id}: {new.kind} {new.class_}: {new.reason}",
                *(f"{'':21}evidence: {e}" for e in seen),
            )
            return "\n".join(lines)
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


def _known(value: object) -> object:
    return "–" if value is None else value


def supervise_and_print(run: "RunDirectory", *, as_json: bool = False, stop_trainer: bool = False, **given: Any) -> int:
    """``supervise`` with every record printed as it is written. For a run that has ended it prints one line.

    ``given``: of ``supervise``.
    """
    from trainwatch.core.app.foreground import NothingToSuperviseError, supervise
    from trainwatch.core.app.supervise.machine_end import ends_with_us
    from trainwatch.core.app.supervise.state_keeper import OwnFiles

    def watches(story: RunStory) -> Callable[[Sequence[Record]], None]:
        if not stop_trainer:
            ends, kind = "it goes on after a logout; SIGTERM ends it, and not the training", ends_with_us()
            if kind is not None:
                ends = f"with the end of this {kind} (SIGTERM) the training saves, if it can, and ends, too"
            warn(f"this process is the supervisor (pid {os.getpid()}); {ends}")
        return printer.begin(story)

    outlive_reader()
    printer = EventPrinter(run, as_json=as_json)
    try:
        return supervise(
            run,
            listener=watches,
            turning=printer.turn,
            stop_trainer=stop_trainer,
            own_files=OwnFiles(run, as_json=as_json),
            after_fault=printer.after_fault,
            **given,
        )
    except NothingToSuperviseError as ended:
        print(ended, file=sys.stdout if ended.code == ExitCode.DONE else sys.stderr)
        return ended.code


class EventPrinter:
    """One line per event, and every ``watch.summary_s`` a health line that repeats open incidents."""

    def __init__(self, run: "RunDirectory", *, as_json: bool) -> None:
        self._as_json = as_json
        self._run = run
        self._summary_s = run.load_spec().settings.watch.summary_s
        self._summary_at = math.inf if as_json else time.monotonic() + self._summary_s
        import threading  # `events` does not need it

        self._lock = threading.Lock()
        self._gives_way: Callable[[], bool] = lambda: False

    def begin(self, story: RunStory) -> Callable[[Sequence[Record]], None]:
        """What gets the records. What the run waits for was told by an earlier supervisor; it is said again."""
        if story.state_why.holds and not self._as_json:
            print(f"{printable(reason_of(story))} (since {_clock(story.state_t, story.wall0)})", flush=True)
        return self

    def after_fault(self, gives_way: Callable[[], bool]) -> None:
        """Set what is asked if a health line fails: whether a new version of trainwatch goes on."""
        self._gives_way = gives_way

    def __call__(self, records: Sequence[Record]) -> None:
        with self._lock:
            for record in records:
                show(record, self._run.id, as_json=self._as_json)

    def turn(self) -> None:
        """Begin a health line if it is time, in a thread: it reads the state of the run."""
        if time.monotonic() >= self._summary_at:
            self._summary_at = time.monotonic() + self._summary_s
            import threading

            threading.Thread(target=self._summarise, name="summary", daemon=True).start()

    def _summarise(self) -> None:
        try:
            with self._lock:
                line = self._health_line()
                print(line, flush=True)
        except Exception:
            # The run's folder may just be removed or made again: the next line is due soon. Or what is loaded only now
            # was replaced by another version, which then goes on.
            self._gives_way()

    def _health_line(self) -> str:
        from trainwatch.core.app.runs.run_status import read_run

        from .status_text import machine_lines, status_lines

        status = read_run(self._run).status
        said = [*status_lines(status)[:4], *machine_lines(status)]
        said += [
            f"ALERT {i['kind']} since {_clock(i['t'], status['wall0'])}: {i['reason']}"
            for i in status["incidents"]
            if i["open"] and not i["acknowledged"] and i["severity"] != "info"
        ]
        now = time.strftime("%Y-%m-%d %H:%M:%S")
        return f"{now}  health: {' | '.join(' '.join(x.split()) for x in said)}"


def _clock(t: float, wall0: float) -> str:
    return clock(wall0 + t, time.time())
