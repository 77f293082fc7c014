"""Evidence of why a run ended, gathered from its log in one pass; ``diagnosis`` weighs it at the end.

Constant memory: per class and role the strongest line is kept. Evidence after which training went on is dropped (an OOM
that was caught, a wandb retry, an earlier run in the same file).
"""

import msgspec

from ...model.failure import EvidenceLine, FailureClass
from ..text.lines import Finished, LineFold, fold, lines_with, plain, says_nothing, split_rank
from ..text.patterns import LazyPattern
from ..text.reading import Reading
from ..text.segments import read_segment
from ..text.shape_table import ShapeTable
from .catalogue import CHECKPOINT_READS, CONFIG_READS, CompiledCatalogue
from .kernel_lines import read_kernel_line
from .tracebacks import CONSEQUENCES, class_of, find_exception, reads_configuration

GENERIC = 0.5
"""Weight from which evidence is more than a hint."""
SURVIVED_STEPS = 4
"""Times the step must move after a failure line for it to count as survived. Why not one: a bar is redrawn once more
after an error, and other ranks may finish the step they are in."""
KERNEL_KEPT = 5
CASCADE_KEPT = 12
TEXT_KEPT = 400
"""Characters kept of an evidence line."""
NEAR_LINES = 3
"""A source line this close above an exception is the one that raised it."""


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
    """Evidence so far: bounded, serialisable. ``watch`` reads progress from the first evidence on, else None.

    ``kernel``: the newest kernel lines that mean something, whatever the log says of the same class.
    """

    fold: LineFold = LineFold()
    findings: tuple[Finding, ...] = ()
    survived: tuple[Finding, ...] = ()
    cascade: tuple[EvidenceLine, ...] = ()
    watch: Reading | None = None
    config_read: int = 0
    restored: int = 0
    raised: int = 0
    kernel: tuple[str, ...] = ()


START_EVIDENCE = DiagnosisState()


def read_evidence(state: DiagnosisState, text: str, catalogue: CompiledCatalogue) -> DiagnosisState:
    """The state after ``text`` (any chunk of the log). Lines count from 1 over the whole log."""
    after, done = fold(state.fold, text)
    if done.text and not says_nothing(done, catalogue.gates if state.watch is None else catalogue.watching):
        state = _read_finished(state, done, catalogue)
    return msgspec.structs.replace(state, fold=after)


def with_last_line(state: DiagnosisState, catalogue: CompiledCatalogue) -> DiagnosisState:
    """The state with the unfinished last line read as if it were whole: a process may die in the middle of one."""
    if not state.fold.rest:
        return state
    line = plain(state.fold.rest)
    if catalogue.watching.any.search(line) is None:
        return state
    return _read_line(state, state.fold.lines + 1, line, catalogue)


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
        state = _watch(state, state.watch, number, line, catalogue.shapes)
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
            spoken=best is None,
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


_SOURCE = LazyPattern(
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


def _watch(state: DiagnosisState, watch: Reading, number: int, line: str, shapes: ShapeTable) -> DiagnosisState:
    """Training that goes on after a failure line outlives it; a finite loss outlives a NaN."""
    reading = read_segment(watch, line, number, shapes)
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
            said = f"{clue.meaning} — {line.strip()}"
            state = _found(state, clue.failure, "root", clue.weight, number=0, line=said)
            state = msgspec.structs.replace(state, kernel=(*state.kernel, said[:TEXT_KEPT])[-KERNEL_KEPT:])
    return state


def is_news(line: str, catalogue: CompiledCatalogue) -> bool:
    """True where a line may be evidence or announces a phase: what a burst of log must not drop."""
    line = plain(line)
    if catalogue.gates.any.search(line) is not None:
        rows = catalogue.matches(line)
        if rows or (rows is not None and (find_exception(split_rank(line)[1]) is not None)):
            return True
    return catalogue.shapes.phase_of_line(line.lower()) is not None
