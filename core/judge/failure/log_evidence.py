"""Evidence of why a run ended, gathered from its log in one pass; ``diagnosis`` weighs it at the end.

Memory is constant: per class and role the strongest line is kept. Evidence after which training went on is dropped (an
out-of-memory error that was caught, a retry of wandb, an earlier run in the same file).
"""

import msgspec

from ...model.shipped.failure import EvidenceLine
from ..text.lines import Finished, LineFold, fold, is_quiet, lines_with, plain, split_rank
from ..text.patterns import LazyPattern
from ..text.reading import Reading
from ..text.segments import read_segment
from ..text.shape_table import ShapeTable
from .catalogue import CHECKPOINT_READS, CONFIG_READS, TRACEBACK, CompiledCatalogue
from .exceptions import find_exception, proof_of, reads_configuration
from .kernel_lines import read_kernel_line
from .rank_ends import GATES as RANK_GATES
from .rank_ends import NO_ENDS, RankEnds, with_line

GENERIC = 0.5
"""Weight from which evidence is more than a hint."""
SURVIVED_STEPS = 4
"""A failure line counts as survived once the step has moved this often. Why not once: a bar is redrawn once more after
an error, and other ranks may finish their current step."""
KERNEL_KEPT = 5
CASCADE_KEPT = 12
TEXT_KEPT = 400
"""Characters kept of an evidence line."""
NEAR_LINES = 3
"""A source line at most this far above an exception is the one that raised it."""


class Finding(msgspec.Struct, frozen=True):
    """The best evidence for one class. ``line`` 0: from the kernel log. ``last``: the newest line with the same."""

    failure: str
    role: str
    weight: float
    line: int
    text: str
    last: int
    count: int = 1


class DiagnosisState(msgspec.Struct, frozen=True):
    """Evidence so far: bounded, serialisable. ``watch``: progress since the first evidence, None before it.

    ``kernel``: the newest kernel lines that match a failure class, whatever the log says about the same class.
    ``config_read``, ``restored``, ``raised``: the newest line that read a configuration, read a checkpoint, named an
    exception; 0 = none. ``beats``: the lines of the last two steps after the first evidence. ``unraised``: the newest
    line that begins the report of an exception that ended nothing. ``traceback``: the newest line that begins a
    traceback; ``traced``: the newest exception at the end of one.
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
    beats: tuple[int, ...] = ()
    unraised: int = 0
    traceback: int = 0
    traced: int = 0
    ranks: RankEnds = NO_ENDS


START_EVIDENCE = DiagnosisState()


def read_evidence(state: DiagnosisState, text: str, catalogue: CompiledCatalogue) -> DiagnosisState:
    """The state after ``text`` (any chunk of the log). Lines count from 1 over the whole log."""
    after, done = fold(state.fold, text)
    if done.text and not is_quiet(done, catalogue.gates if state.watch is None else catalogue.watching):
        state = _read_finished(state, done, catalogue)
    return msgspec.structs.replace(state, fold=after)


def with_last_line(state: DiagnosisState, catalogue: CompiledCatalogue) -> DiagnosisState:
    """The state with the unfinished last line read as if it were finished: a process may end in the middle of one."""
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
            if (state.watch is not None) != watching:  # the gates change from here on
                rest, first = text[end:], number
                break
        text = rest
    return state


def _read_line(state: DiagnosisState, number: int, line: str, catalogue: CompiledCatalogue) -> DiagnosisState:
    if state.watch is not None:
        state = _watch(state, state.watch, number, line, catalogue.shapes)
    if catalogue.gates.any.search(line) is None:
        return state
    if any(gate in line for gate in RANK_GATES):
        state = msgspec.structs.replace(state, ranks=with_line(state.ranks, number, line))
    if _reads_config(line):
        return msgspec.structs.replace(state, config_read=number)
    if line[:1] in " \t│[" and any(word in line for word in CHECKPOINT_READS) and "rror" not in line:
        return msgspec.structs.replace(state, restored=number)
    if TRACEBACK in line:
        if state.unraised == number - 1:
            return state
        return msgspec.structs.replace(state, traceback=number, watch=state.watch or Reading())
    if _SOURCE.match(line):
        return state
    if _UNRAISED.match(split_rank(line)[1]):
        return msgspec.structs.replace(state, unraised=number)
    rows = catalogue.matches(line)
    if rows is None:
        return state
    raised = find_exception(split_rank(line)[1], catalogue)
    best = max((row for row in rows if row.role == "root"), key=lambda row: row.weight, default=None)
    if raised is not None:
        if state.unraised and number - state.unraised <= TRACEBACK_LINES:
            return msgspec.structs.replace(state, unraised=0, traceback=0)
        traced = number if state.traceback and number - state.traceback <= TRACEBACK_LINES else state.traced
        state = msgspec.structs.replace(state, raised=number, traced=traced, traceback=0)
        known = proof_of(
            raised,
            catalogue,
            configured=bool(state.config_read) and number - state.config_read <= NEAR_LINES,
            restored=bool(state.restored) and number - state.restored <= NEAR_LINES,
            with_message=best is None,
        )
        if known is not None and (best is None or (best.weight < GENERIC and known.weight > best.weight)):
            return _with_finding(state, known.failure, "root", known.weight, number=number, line=line)
        if raised.type in catalogue.consequences:
            state = _with_cascade_line(state, number, line)
    if best is not None:
        state = _with_finding(state, best.failure, "root", best.weight, number=number, line=line)
    for row in rows:
        if row.role == "confirmation" and (best is None or row.failure == "success"):
            state = _with_finding(state, row.failure, "confirmation", row.weight, number=number, line=line)
        elif row.role == "cascade" and best is None:
            state = _with_cascade_line(state, number, line)
            if row.failure != "unknown":
                state = _with_finding(state, row.failure, "cascade", row.weight, number=number, line=line)
    return state


_SOURCE = LazyPattern(
    r"\s+(?:raise|return|assert|if|elif|except|with|for|while|from|import|print|logger?\.\w+)\b|\s*File \""
    r"|\s*[│|]?\s*[~^]+\s*$|\s*│"
)
"""Lines of a traceback that quote source code. They are not evidence."""


_UNRAISED = LazyPattern(r"Exception ignored (?:in|while)\b|Error in (?:atexit\._run_exitfuncs|sys\.\w*hook)\b")
"""Python reports an exception in a finaliser or an exit handler. It does not change what the program did before."""
TRACEBACK_LINES = 300
"""Longest traceback, with chained exceptions of its own."""


def _reads_config(line: str) -> bool:
    return any(word in line for word in CONFIG_READS) and line[:1] in " \t│[" and reads_configuration(line)


def _with_finding(
    state: DiagnosisState, failure: str, role: str, weight: float, *, number: int, line: str
) -> DiagnosisState:
    """The state with one more piece of evidence. Per class and role the strongest is kept, of equals the first."""
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


def _with_cascade_line(state: DiagnosisState, number: int, line: str) -> DiagnosisState:
    if len(state.cascade) >= CASCADE_KEPT or (state.cascade and state.cascade[-1].line == number):
        return state
    return msgspec.structs.replace(state, cascade=(*state.cascade, EvidenceLine(number, line.strip()[:TEXT_KEPT])))


def _watch(state: DiagnosisState, watch: Reading, number: int, line: str, shapes: ShapeTable) -> DiagnosisState:
    """The state without evidence after which training went on; a NaN goes once the loss is finite again."""
    reading = read_segment(watch, line, number, shapes)
    if reading is watch:
        return state
    if reading.heartbeats < SURVIVED_STEPS:
        beats = (*state.beats, number)[-2:] if reading.heartbeats > watch.heartbeats else state.beats
        return msgspec.structs.replace(state, watch=reading, beats=beats)
    still_nan = reading.loss_is_nan
    kept = tuple(each for each in state.findings if each.line == 0 or (still_nan and each.failure == "nan_loss"))
    survived = tuple(each for each in state.findings if each not in kept and each.role == "root")
    watch_on = Reading(loss_is_nan=True) if any(each.failure == "nan_loss" for each in kept) else None
    return msgspec.structs.replace(
        state,
        findings=kept,
        survived=survived or state.survived,
        cascade=(),
        watch=watch_on,
        beats=(),
        traceback=0,
        traced=0,
        ranks=NO_ENDS,
    )


def kernel_evidence(state: DiagnosisState, text: str, catalogue: CompiledCatalogue) -> DiagnosisState:
    """The state after lines of the kernel log (any number). They count as earlier than every log line."""
    for line in text.splitlines():
        proof = read_kernel_line(line, catalogue)
        if proof is not None and proof.failure != "unknown":
            meaning = f"{proof.meaning} — {line.strip()}"
            state = _with_finding(state, proof.failure, "root", proof.weight, number=0, line=meaning)
            state = msgspec.structs.replace(state, kernel=(*state.kernel, meaning[:TEXT_KEPT])[-KERNEL_KEPT:])
    return state


def is_news(line: str, catalogue: CompiledCatalogue) -> bool:
    """True if a line may be evidence or announces a phase: a burst of log keeps such lines."""
    line = plain(line)
    if catalogue.gates.any.search(line) is not None:
        rows = catalogue.matches(line)
        if rows or (rows is not None and (find_exception(split_rank(line)[1], catalogue) is not None)):
            return True
    return catalogue.shapes.phase_of_line(line.lower()) is not None
