"""Evidence of why a run ended, gathered from its log in one pass; ``diagnosis`` weighs it at the end.

Memory is constant: per class and kind the strongest line is kept. Evidence after which training went on is dropped (an
out-of-memory error that was caught, a retry of wandb, an earlier run in the same file).
"""

import msgspec

from ..text.carriers import peel
from ..text.lines import Finished, fold, lines_with, plain
from ..text.reading import Reading
from ..text.shapes import ShapeTable
from ..text.worded_lines import read_segment
from .catalogue import CompiledCatalogue, read_kernel_line
from .evidence_lines import FENCE, SURE_WORDS, is_of_traceback, read_last_words, read_line
from .evidence_state import NO_ENDS, TAIL_CHARS, TEXT_KEPT, DiagnosisState, with_finding
from .tracebacks import Finding, find_exception

SURVIVED_STEPS = 4
"""A failure line counts as survived once the step has moved this often. Why not once: a bar is redrawn once more after
an error, and other ranks may finish their current step."""
KERNEL_KEPT = 5
MEANING = " — "
"""Between the meaning of a kernel line and the line."""
LAST_LINES = 6
"""Lines from the end of a log that are read as errors if nothing else shows a cause."""
START_EVIDENCE = DiagnosisState()


def read_evidence(state: DiagnosisState, text: str, catalogue: CompiledCatalogue) -> DiagnosisState:
    """The state after ``text`` (any chunk of the log). Lines count from 1 over the whole log."""
    after, done = fold(state.fold, text)
    if done.text:
        state = _read_finished(state, done, catalogue)
    tail = done.text[-TAIL_CHARS:] if len(done.text) >= TAIL_CHARS else f"{state.tail}{done.text}"[-TAIL_CHARS:]
    return msgspec.structs.replace(state, fold=after, tail=tail)


def with_last_words(state: DiagnosisState, catalogue: CompiledCatalogue, *, killed: bool = False) -> DiagnosisState:
    """The state with the last lines read as errors, although no gate opened for them: for an end without a cause.

    ``killed``: by SIGKILL, so that they may be ordinary ones: only what is sure counts.
    What a launcher prints about its command is left out: its traceback says how the command was started.
    """
    told = list(state.last_lines())
    if any(FENCE in line for _, line in told):  # a quotation
        return state
    of_launcher = {each.line for each in state.cascade}
    own = [(number, line) for number, line in told if number not in of_launcher and not is_of_traceback(line)]
    least = SURE_WORDS if killed or any(each.failure != "success" for each in state.findings) else 0.0
    for number, line in own[:LAST_LINES]:
        state = read_last_words(state, number, line, catalogue, least)
    return state


def with_last_line(state: DiagnosisState, catalogue: CompiledCatalogue) -> DiagnosisState:
    """The state with the unfinished last line read as if it were finished: a process may end in the middle of one."""
    return read_evidence(state, "\n", catalogue) if state.fold.rest else state


def _read_finished(state: DiagnosisState, done: Finished, catalogue: CompiledCatalogue) -> DiagnosisState:
    """Read all segments after evidence (``hot``), else those that a gate lets through."""
    text, first = done.text, done.first_line
    while text:
        watching, hot = state.watch is not None, state.hot > 0
        rest = ""
        part = Finished(text, first)
        gates = catalogue.watching if watching else catalogue.gates
        for number, end, line in part.segments() if hot else lines_with(part, gates):
            state = _read_line(state, number, line, catalogue)
            if (state.watch is not None) != watching or (state.hot > 0) != hot:  # other lines count from here on
                rest, first = text[end:], number
                break
        text = rest
    return state


def _read_line(state: DiagnosisState, number: int, line: str, catalogue: CompiledCatalogue) -> DiagnosisState:
    if state.watch is not None:
        state = _watch(state, state.watch, number, line, catalogue.shapes)
    if state.hot:
        state = msgspec.structs.replace(state, hot=state.hot - 1)
    elif catalogue.gates.any.search(line) is None:
        return state
    return read_line(state, number, line, catalogue)


def _watch(state: DiagnosisState, watch: Reading, number: int, line: str, shapes: ShapeTable) -> DiagnosisState:
    """The state without evidence after which training went on; a NaN goes once the loss is finite again."""
    reading = read_segment(watch, line, number, shapes)
    if reading is watch:
        return state
    if reading.heartbeats < SURVIVED_STEPS:
        beats = (*state.beats, number)[-2:] if reading.heartbeats > watch.heartbeats else state.beats
        return msgspec.structs.replace(state, watch=reading, beats=beats)
    still_nan = reading.loss_is_nan
    since = state.beats[-1] if state.beats else number
    nan = [each for each in state.findings if each.failure == "nan_loss" and (still_nan or each.last >= since)]
    kept = tuple(each for each in state.findings if each.line == 0 or each in nan)
    survived = tuple(each for each in state.findings if each not in kept and each.role == "root")
    watch_on = Reading(loss_is_nan=True) if any(each.failure == "nan_loss" for each in kept) else None
    return msgspec.structs.replace(
        state,
        findings=tuple(msgspec.structs.replace(each, beats=0) for each in kept),
        survived=survived or state.survived,
        cascade=(),
        watch=watch_on,
        beats=(),
        traceback=0,
        traced=0,
        ranks=NO_ENDS,
        blocks=(),
        report=0,
    )


def kernel_evidence(state: DiagnosisState, text: str, catalogue: CompiledCatalogue) -> DiagnosisState:
    """The state after lines of the kernel log (any number). They count as earlier than every log line."""
    for line in text.splitlines():
        proof = read_kernel_line(line, catalogue)
        if proof is not None and proof.failure != "unknown":
            meaning = f"{proof.meaning}{MEANING}{line.strip()}"
            state = with_finding(state, Finding(proof.failure, "root", proof.weight, 0, meaning, 0))
            state = msgspec.structs.replace(state, kernel=(*state.kernel, meaning[:TEXT_KEPT])[-KERNEL_KEPT:])
    return state


def is_news(line: str, catalogue: CompiledCatalogue) -> bool:
    """True if a line may be evidence or announces a phase: a burst of log keeps such lines."""
    line = plain(line)
    if catalogue.gates.any.search(line) is not None:
        rows = catalogue.matches(line)
        if rows or (rows is not None and (find_exception(peel(line).text, catalogue) is not None)):
            return True
    return catalogue.shapes.phase_of_line(line.lower()) is not None
