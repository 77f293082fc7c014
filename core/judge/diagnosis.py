"""Why a run ended, folded from its log: evidence is gathered in one pass, ``diagnose`` weighs it at the end.

Root is told from cascade by what a line is (its role in the catalogue), by how much it proves, and by order: among
equals the first one counts, because launchers and other ranks report later. Evidence after which training went on is
dropped (an OOM that was caught, a wandb retry, an earlier run in the same file). Known limits: a program that prints a
library's message as plain data looks like that failure; a SIGKILL by hand looks like one by the OOM killer.
"""

import re
from collections.abc import Iterable

import msgspec

from ..model.failure import Diagnosis, EvidenceLine, FailureClass
from .catalogue import CHECKPOINT_READS, CONFIG_READS, CompiledCatalogue, compile_catalogue
from .exits import SIGNALS, signal_of
from .lines import Finished, LineFold, fold, lines_with, plain, split_rank
from .phase_words import phase_of_line
from .reading import Reading
from .segments import read_segment
from .tracebacks import CONSEQUENCES, class_of, find_exception, reads_configuration
from .xid import read_kernel_line

__all__ = [
    "START_EVIDENCE",
    "CompiledCatalogue",
    "DiagnosisState",
    "compile_catalogue",
    "diagnose",
    "diagnosis_of",
    "is_news",
    "kernel_evidence",
    "read_evidence",
]

SURVIVED_STEPS = 4
"""Times the step must move after a failure line for it to count as survived. Why not one: a bar is redrawn once more
after an error, and other ranks may finish the step they are in."""
CASCADE_KEPT = 12
TEXT_KEPT = 400
"""Characters kept of an evidence line."""
NEAR_LINES = 3
"""A source line this close above an exception is the one that raised it."""
SPECIFIC, GENERIC = 0.8, 0.5
"""Weights at which evidence names a mechanism, and at which it is more than a hint."""


class Finding(msgspec.Struct, frozen=True):
    """The best evidence for one class. ``line`` 0: from the kernel. ``last`` line on which it was seen again."""

    failure: FailureClass
    role: str
    weight: float
    line: int
    text: str
    last: int
    count: int = 1


class DiagnosisState(msgspec.Struct, frozen=True):
    """Evidence so far: bounded, serialisable. ``watch`` reads progress from the first evidence on, else None."""

    fold: LineFold = LineFold()
    findings: tuple[Finding, ...] = ()
    survived: tuple[Finding, ...] = ()
    cascade: tuple[EvidenceLine, ...] = ()
    watch: Reading | None = None
    config_read: int = 0
    restored: int = 0
    raised: int = 0


START_EVIDENCE = DiagnosisState()


def read_evidence(state: DiagnosisState, text: str, catalogue: CompiledCatalogue) -> DiagnosisState:
    """The state after ``text`` (any chunk of the log). Lines count from 1 over the whole log."""
    after, done = fold(state.fold, text)
    if done.text:
        state = _read_finished(state, done, catalogue)
    return msgspec.structs.replace(state, fold=after)


def _read_finished(state: DiagnosisState, done: Finished, catalogue: CompiledCatalogue) -> DiagnosisState:
    text, first = done.text, done.first_line
    while text:
        watching = state.watch is not None
        rest = ""
        for number, end, line in lines_with(Finished(text, first), catalogue.watching if watching else catalogue.gates):
            state = _read_line(state, number, line, catalogue)
            if (state.watch is not None) != watching:  # from here on other lines matter
                rest, first = text[end:], number
                break
        text = rest
    return state


def _read_line(state: DiagnosisState, number: int, line: str, catalogue: CompiledCatalogue) -> DiagnosisState:
    if state.watch is not None:
        state = _watch(state, state.watch, number, line)
    if catalogue.gates.any.search(line) is None:
        return state
    if _reads_config(line):
        return msgspec.structs.replace(state, config_read=number)
    if line[:1] in " \t│[" and any(word in line for word in CHECKPOINT_READS) and "rror" not in line:
        return msgspec.structs.replace(state, restored=number)
    if _SOURCE.match(line):
        return state
    rows = catalogue.matches(line)
    if rows is None:
        return state
    raised = find_exception(split_rank(line)[1])
    best = max((row for row in rows if row.role == "root"), key=lambda row: row.weight, default=None)
    if raised is not None:
        state = msgspec.structs.replace(state, raised=number)
        known = class_of(
            raised,
            configured=bool(state.config_read) and number - state.config_read <= NEAR_LINES,
            restored=bool(state.restored) and number - state.restored <= NEAR_LINES,
        )
        if known is not None and (best is None or known[1] > best.weight):
            return _found(state, known[0], "root", known[1], number=number, line=line)
        if raised.type in CONSEQUENCES:
            state = _followed(state, number, line)
    if best is not None:
        state = _found(state, best.failure, "root", best.weight, number=number, line=line)
    for row in rows:
        if row.role == "confirmation" and (best is None or row.failure == "success"):
            state = _found(state, row.failure, "confirmation", row.weight, number=number, line=line)
        elif row.role == "cascade" and best is None:
            state = _followed(state, number, line)
            if row.failure != "unknown":
                state = _found(state, row.failure, "cascade", row.weight, number=number, line=line)
    return state


_SOURCE = re.compile(
    r"\s+(?:raise|return|assert|if|elif|except|with|for|while|from|import|print|logger?\.\w+)\b|\s*File \""
    r"|\s*[│|]?\s*[~^]+\s*$|\s*│"
)
"""Lines of a traceback that quote source code: their words are the program's, not an event."""


def _reads_config(line: str) -> bool:
    return any(word in line for word in CONFIG_READS) and line[:1] in " \t│[" and reads_configuration(line)


def _found(
    state: DiagnosisState, failure: FailureClass, role: str, weight: float, *, number: int, line: str
) -> DiagnosisState:
    """The state with one more piece of evidence; per class and role the strongest is kept, the first of equals."""
    kept: list[Finding] = []
    mine = Finding(failure, role, weight, number, line.strip()[:TEXT_KEPT], number)
    for each in state.findings:
        if (each.failure, each.role) != (failure, role):
            kept.append(each)
        elif weight > each.weight:
            mine = msgspec.structs.replace(mine, count=each.count + 1)
        else:
            mine = msgspec.structs.replace(each, last=number, count=each.count + 1)
    watch = state.watch
    if watch is None and failure != "success" and (role != "cascade" or weight >= GENERIC):
        watch = Reading()
    return msgspec.structs.replace(state, findings=(*kept, mine), watch=watch)


def _followed(state: DiagnosisState, number: int, line: str) -> DiagnosisState:
    if len(state.cascade) >= CASCADE_KEPT or (state.cascade and state.cascade[-1].line == number):
        return state
    return msgspec.structs.replace(state, cascade=(*state.cascade, EvidenceLine(number, line.strip()[:TEXT_KEPT])))


def _watch(state: DiagnosisState, watch: Reading, number: int, line: str) -> DiagnosisState:
    """Training that goes on after a failure line outlives it; a finite loss outlives a NaN."""
    reading = read_segment(watch, line, number)
    if reading is watch:
        return state
    if reading.heartbeats < SURVIVED_STEPS:
        return msgspec.structs.replace(state, watch=reading)
    ill = reading.loss_is_nan
    kept = tuple(each for each in state.findings if each.line == 0 or (ill and each.failure == "nan_loss"))
    gone = tuple(each for each in state.findings if each not in kept and each.role == "root")
    watch_on = Reading(loss_is_nan=True) if any(each.failure == "nan_loss" for each in kept) else None
    return msgspec.structs.replace(state, findings=kept, survived=gone or state.survived, cascade=(), watch=watch_on)


def kernel_evidence(state: DiagnosisState, text: str) -> DiagnosisState:
    """The state after lines of the kernel log (any number). They come before every log line in order."""
    for line in text.splitlines():
        clue = read_kernel_line(line)
        if clue is not None and clue.failure != "unknown":
            state = _found(state, clue.failure, "root", clue.weight, number=0, line=f"{clue.meaning} — {line.strip()}")
    return state


def is_news(line: str, catalogue: CompiledCatalogue) -> bool:
    """True where a line may be evidence or announces a phase: what a burst of log must not drop."""
    line = plain(line)
    if catalogue.gates.any.search(line) is not None:
        rows = catalogue.matches(line)
        if rows or (rows is not None and (find_exception(split_rank(line)[1]) is not None)):
            return True
    return phase_of_line(line.lower()) is not None


def diagnosis_of(chunks: Iterable[str], catalogue: CompiledCatalogue, exit_code: int | None = None) -> Diagnosis:
    """What ended the run whose log is given in chunks (``trainwatch diagnose``)."""
    state = START_EVIDENCE
    for chunk in chunks:
        state = read_evidence(state, chunk, catalogue)
    return diagnose(state, catalogue, exit_code=exit_code)


# ------------------------------------------------------------------------------------------------------------- weighing


def diagnose(
    state: DiagnosisState,
    catalogue: CompiledCatalogue,
    *,
    exit_code: int | None = None,
    signal: int | str | None = None,
    oom_kills: int | None = None,
    stopped_by_operator: bool = False,
    finished_hint: bool = False,
) -> Diagnosis:
    """Weigh the evidence.

    ``exit_code`` negative = signal, as Python has it; None = lost. ``oom_kills``: processes the kernel killed for
    memory during the attempt, None = cannot be read. ``finished_hint``: other evidence says training was complete.
    """
    if state.fold.rest:
        line = plain(state.fold.rest)
        if catalogue.watching.any.search(line) is not None:
            state = _read_line(state, state.fold.lines + 1, line, catalogue)
    killed = signal_of(exit_code, signal)
    if stopped_by_operator:
        return _answer(catalogue, state, "killed_by_user", 0.97, None)
    cause = _root(state)
    done = next((each for each in state.findings if each.failure == "success"), None)
    if exit_code == 0 and killed is None:
        return _ended_well(catalogue, state, cause, done)
    if oom_kills and killed == 9 and (cause is None or cause.weight < SPECIFIC):
        return _answer(catalogue, state, "host_oom", 0.9, cause if cause and cause.failure == "host_oom" else None)
    if cause is not None and cause.weight >= GENERIC:
        if (
            exit_code is None
            and killed is None
            and done is not None
            and done.last > cause.last
            and done.weight > GENERIC + 0.2
        ):
            return _answer(catalogue, state, "success", 0.7, done)
        return _answer(catalogue, state, cause.failure, _confidence(state, cause), cause)
    follow = max(
        (each for each in state.findings if each.role == "cascade"), key=lambda each: each.weight, default=None
    )
    if follow is not None and (cause is None or follow.weight > cause.weight):
        if follow.failure == "host_oom":
            return _killed_child(catalogue, state, follow, oom_kills)
        return _answer(catalogue, state, follow.failure, follow.weight, follow)
    if killed is not None:
        failure, confidence = SIGNALS.get(killed, ("unknown", 0.25))
        if killed in (9, 6) and cause is not None:
            return _answer(catalogue, state, cause.failure, cause.weight, cause)
        return _answer(catalogue, state, failure, confidence, None)
    if cause is not None:
        return _answer(catalogue, state, cause.failure, cause.weight, cause)
    if exit_code is None and (done is not None or finished_hint):
        return _answer(catalogue, state, "success", min(0.85, done.weight) if done else 0.6, done)
    return _answer(catalogue, state, "unknown", 0.2, None)


def _root(state: DiagnosisState) -> Finding | None:
    """The first of the strongest roots. A printed NaN loss counts as one: it comes before what it breaks."""
    roots = [each for each in state.findings if each.role == "root" or each.failure == "nan_loss"]
    if not roots:
        return None
    bar = max(each.weight for each in roots) - PEERS
    return min((each for each in roots if each.weight >= bar), key=lambda each: (each.line, -each.weight))


PEERS = 0.12
"""Evidence this close in weight counts as equally strong: then the first one is the cause."""


def _confidence(state: DiagnosisState, cause: Finding) -> float:
    rival = any(
        each.role == "root" and each.failure != cause.failure and each.weight >= cause.weight - PEERS / 2
        for each in state.findings
    )
    return max(0.05, cause.weight - (0.1 if rival else 0.0))


def _ended_well(
    catalogue: CompiledCatalogue, state: DiagnosisState, cause: Finding | None, done: Finding | None
) -> Diagnosis:
    """Exit status 0: success, unless the loss was NaN at the end or a strong root is the last word (``| tee``)."""
    if cause is not None and cause.failure == "nan_loss":
        return _answer(catalogue, state, "nan_loss", 0.75, cause)
    if cause is not None and cause.weight >= SPECIFIC and state.raised and (done is None or done.last < cause.line):
        return _answer(catalogue, state, cause.failure, 0.6, cause)
    return _answer(catalogue, state, "success", 0.95 if done is not None else 0.9, done)


def _killed_child(
    catalogue: CompiledCatalogue, state: DiagnosisState, follow: Finding, oom_kills: int | None
) -> Diagnosis:
    if oom_kills == 0:  # somebody or something sent SIGKILL; to hold the run for a person, that must be known
        return _answer(catalogue, state, "unknown", 0.4, follow)
    return _answer(catalogue, state, "host_oom", 0.9 if oom_kills else follow.weight, follow)


def _answer(
    catalogue: CompiledCatalogue, state: DiagnosisState, failure: FailureClass, confidence: float, cause: Finding | None
) -> Diagnosis:
    rule = catalogue.rule(failure)
    evidence = EvidenceLine(cause.line, cause.text) if cause is not None else _best_line(state, failure)
    at = evidence.line if evidence is not None else 0
    later = [EvidenceLine(each.line, each.text) for each in state.findings if each.role == "root" and each.line > at]
    cascade = sorted({each.line: each for each in (*state.cascade, *later) if each.line != at}.values(), key=_line_of)
    return Diagnosis(
        failure=failure,
        retryable=rule.retryable,
        confidence=round(confidence, 3),
        cause=evidence,
        cascade=tuple(cascade[:CASCADE_KEPT]),
        explanation=rule.explanation,
        remedies=rule.remedies,
    )


def _line_of(evidence: EvidenceLine) -> int:
    return evidence.line


def _best_line(state: DiagnosisState, failure: FailureClass) -> EvidenceLine | None:
    """For an answer without a cause line: the best that the log has, so that a person can judge."""
    if failure == "success":
        return None
    lines = [each for each in (*state.findings, *state.survived) if each.failure not in ("success", "unknown")]
    best = max(lines, key=lambda each: each.weight, default=None)
    return None if best is None else EvidenceLine(best.line, best.text)
