"""One line of a log as evidence: prefixes off, then by its place in a block and by what it does.

The order of the questions: does it belong to a traceback? Does it link two of them? Does it quote code? Does it report
an exception that ended nothing? What is left is weighed by the signatures, status codes and exception types.
"""

from collections.abc import Iterable, Iterator

import msgspec

from ...model.text.patterns import LazyPattern
from ..text.carriers import TRACEBACK, Carried, peel, unglued
from ..text.position.reading import Reading
from ..text.source_places import frame_of
from . import blocks
from .blocks import DETAIL_LINES, Block, Raised
from .catalogue import CHECKPOINT_READS, CONFIG_READS, OWN_WEIGHT, CompiledCatalogue, Match, Proof
from .evidence_state import (
    GENERIC,
    DiagnosisState,
    Finding,
    kept_text,
    with_block,
    with_cascade_line,
    with_detail,
    with_finding,
    with_place,
    without_handled,
    without_raised,
)
from .exceptions import Raised as Named
from .exceptions import any_exception, find_exception, proof_of, proof_of_message, proof_of_words, reads_configuration
from .kernel_lines import GATES as KERNEL_GATES
from .kernel_lines import read_kernel_line
from .rank_ends import GATES as RANK_GATES
from .rank_ends import with_line
from .speech import EVIDENT, act_of, goes_on, is_label, is_talk

NEAR_LINES = 3
"""A source line at most this far above an exception is the one that raised it."""
TRACEBACK_SEGMENTS = 300
"""Longest traceback that is followed."""
FENCE_LINES = 60
"""Longest quotation between two fences."""
HEADER_LINES = 4
"""Lines from a file and a line to the syntax error found there: source, caret, a note."""
REPORT_LINES = 4
"""Lines after ``terminate called`` or ``panicked at`` that belong to the report."""
UNTOLD = Proof("code_bug", 0.42)
"""What an exception proves of which neither the type nor the message is known."""
SURE_WORDS = 0.6
"""What words prove at least to count beside a report of how a process was ended."""
DETAIL_LEAST = 0.55
"""What words prove at least to count below an exception that says nothing: those of several classes do not."""
REPORTERS = frozenset(
    {"wandb", "mlflow", "comet_ml", "neptune", "clearml", "aim", "sentry_sdk", "slack_sdk", "swanlab"}
)
"""Packages that report a run. What they raise while an exception is handled is not the cause."""
_REPORTER = LazyPattern(rf"(?i:\b(?:{'|'.join(sorted(REPORTERS))}|w&b|sentry|slack|discord|telegram|webhooks?)\b)")
"""Names of such services. What they fail with just after a traceback is not the cause either."""

_SOURCE = LazyPattern(
    r"\s+(?:raise|return|assert|if|elif|except|with|for|while|from|import|print|logger?\.\w+)\b|\s*File \""
    r"|\s*[│|]?\s*[~^]+\s*$|\s*│"
)
"""Lines of a traceback that quote source code. They are not evidence."""
_BOXED = LazyPattern(r"\s*[│┃|]\s(?P<sentence>[A-Z][^│┃|]*\s--?[A-Za-z][^│┃|]*?)\s*[│┃|]$")
"""A sentence about an option in a box of its own: typer and tyro."""
_UNRAISED = LazyPattern(r"Exception ignored (?:in|while)\b|Error in (?:atexit\._run_exitfuncs|sys\.\w*hook)\b")
"""Python reports an exception in a finaliser or an exit handler. It does not change what the program did before."""
FENCE = "```"
"""Around a quotation of several lines."""
_NO_PROGRESS = Reading()


class Weighed(msgspec.Struct, frozen=True):
    """What one line proves for one class."""

    failure: str
    role: str
    weight: float
    warned: bool = False
    told: bool = True


class Line(msgspec.Struct, frozen=True):
    """A line that was weighed. ``best``: its strongest root; ``terminal``: it reports the end of the program.

    ``place``: where what it names was raised, "" = not told.
    """

    number: int
    text: str
    source: str
    best: Weighed | None
    weighed: list[Weighed]
    terminal: bool
    place: str = ""


def read_line(state: DiagnosisState, number: int, line: str, catalogue: CompiledCatalogue) -> DiagnosisState:
    """The state after a plain line, which may have a bar glued before its message."""
    if any(gate in line for gate in RANK_GATES):
        state = msgspec.structs.replace(state, ranks=with_line(state.ranks, number, line))
    carried = peel(line)
    for text in carried.text.split("\n"):
        for piece in unglued(text):
            inner = Carried(piece) if piece is text else peel(piece)
            inner = Carried(inner.text, inner.source or carried.source, inner.level or carried.level)
            state = _read(state, number, inner, catalogue)
    return state


def _read(state: DiagnosisState, number: int, carried: Carried, catalogue: CompiledCatalogue) -> DiagnosisState:
    text, source = carried.text, carried.source
    block = state.block(source)
    if FENCE in text:
        return msgspec.structs.replace(state, fenced=0 if state.fenced else number)
    if state.fenced and number - state.fenced <= FENCE_LINES:
        return state
    if TRACEBACK in text and not is_label(text):
        if state.unraised and state.unraised >= number - 1:
            return state
        opened = blocks.begin(block, source, number)
        state = with_block(state, opened, hot=TRACEBACK_SEGMENTS)
        return msgspec.structs.replace(state, traceback=number, watch=state.watch or _NO_PROGRESS)
    open_block = block if block is not None and not block.ended else None
    if _reads_config(text):
        state = msgspec.structs.replace(state, config_read=number)
        return state if open_block is None else with_block(state, blocks.with_inner(open_block, text))
    if text[:1] in " \t│[" and any(word in text for word in CHECKPOINT_READS) and "rror" not in text:
        state = msgspec.structs.replace(state, restored=number)
        return state if open_block is None else with_block(state, blocks.with_inner(open_block, text))
    if open_block is not None and blocks.is_inner(text):
        return with_block(state, blocks.with_inner(open_block, text))
    if state.hot and text.strip():
        state = with_place(with_detail(state, source, number, text), source, number, text)
    link = blocks.link_of(text)
    if link:
        known = block if block is not None and block.ended else _untraced(state, source, number)
        return with_block(state, msgspec.structs.replace(known, link=link))
    boxed = _BOXED.match(text) if open_block is None else None
    if boxed is not None:
        carried = Carried(boxed["sentence"], source, carried.level)
    elif _SOURCE.match(text):
        frame = frame_of(text)
        if frame is None or frame.function:
            return state
        return msgspec.structs.replace(state, header=(number, frame.place))
    if _UNRAISED.match(text):
        return msgspec.structs.replace(state, unraised=number)
    if goes_on(text) and not state.report:
        return without_handled(state, number)
    if blocks.opens_report(text):
        state = msgspec.structs.replace(state, report=number, hot=max(state.hot, DETAIL_LINES))
    return _weigh(state, number, carried, open_block, catalogue)


def _weigh(
    state: DiagnosisState, number: int, carried: Carried, block: Block | None, catalogue: CompiledCatalogue
) -> DiagnosisState:
    """``block``: the open traceback of the same rank."""
    shown, text = carried.text, catalogue.in_known_words(carried.text)
    carried = carried if text == shown else Carried(text, carried.source, carried.level)
    named = find_exception(text, catalogue) or (any_exception(text) if block is not None else None)
    if named is not None and state.unraised and number - state.unraised <= TRACEBACK_SEGMENTS:
        return msgspec.structs.replace(state, unraised=0, traceback=0)
    bare = named is not None and text.lstrip().startswith((named.type, f"{named.module}."))
    raised = named is not None and (block is not None or (bare and carried.level in ("", "fatal")))
    matches = catalogue.matches(text)
    if matches is None:
        return state if block is None or named is None else with_block(state, blocks.ended(block, number, text))
    weighed = list(_evidence(carried, matches, raised=raised, catalogue=catalogue))
    best = max((each for each in weighed if each.role == "root"), key=lambda each: each.weight, default=None)
    if best is None and block is not None and named is not None and named.type in catalogue.consequences:
        best = _by_place(named, block, carried, catalogue)
    if named is None:
        said = _WHAT.match(text)
        if said is not None and best is None:
            proof = proof_of_message("Exception", said["message"], catalogue) or UNTOLD
            best = Weighed(proof.failure, "root", proof.weight, told=proof.told)
        if best is None and all(each.role == "cascade" for each in weighed):
            if _ERROR.match(text if not carried.level else f"{carried.level} {text}"):
                best = _worded(text, carried, catalogue, least=SURE_WORDS if weighed else 0.0)
            elif _explains_untold(state, number, carried.source):
                best = _worded(text, carried, catalogue, least=DETAIL_LEAST)
        return _with_line(state, Line(number, shown, carried.source, best, weighed, _in_report(state, number, carried)))
    at = text.find(named.type)
    if not raised and act_of(text, at, at + len(named.type), failure="", level=carried.level) not in EVIDENT:
        return state
    if block is None and 0 < state.traced >= number - DETAIL_LINES and _REPORTER.search(text) is not None:
        return with_cascade_line(state, number, shown)
    state = msgspec.structs.replace(state, raised=number)
    known = _typed(state, number, named, catalogue, with_message=best is None)
    if known is None and named.type not in catalogue.consequences and block is not None and best is None:
        known = UNTOLD
    told = best is not None
    if known is not None and (best is None or (best.weight < GENERIC and known.weight > best.weight)):
        told = known.told
        best = Weighed(known.failure, "root", known.weight, carried.level == "warning", told)
    place = block.own if block is not None else _headed(state, number)
    line = Line(number, shown, carried.source, best, weighed, raised or _in_report(state, number, carried), place)
    if block is not None:
        state = msgspec.structs.replace(state, traced=number, traceback=0)
        return _with_raised(state, block, line, told=told, reported=named.module.split(".")[0] in REPORTERS)
    if named.type in catalogue.consequences:
        state = with_cascade_line(state, number, shown)
    return _with_line(state, line)


def _by_place(named: Named, block: Block, carried: Carried, catalogue: CompiledCatalogue) -> Weighed | None:
    """What a type that proves nothing alone does by its place: ``EOFError in …/getpass.py:_raw_input``."""
    placed = Carried(f"{named.type} in {block.last}", carried.source, carried.level)
    matches = catalogue.matches(placed.text)
    known = [] if matches is None else _evidence(placed, matches, raised=True, catalogue=catalogue)
    return max((each for each in known if each.role == "root"), key=lambda each: each.weight, default=None)


def _headed(state: DiagnosisState, number: int) -> str:
    """The place of a syntax error of the file that Python was to run: it has a header and no traceback."""
    at, place = state.header
    return place if 0 < number - at <= HEADER_LINES else ""


def _explains_untold(state: DiagnosisState, number: int, source: str) -> bool:
    """Whether the line stands below an exception whose own words say nothing: its message may go on here."""
    return any(
        0 < number - each.line <= DETAIL_LINES and not each.told and each.weight < GENERIC and each.source == source
        for each in state.findings
    )


def _untraced(state: DiagnosisState, source: str, number: int) -> Block:
    """The block of an exception whose traceback begins before the log does."""
    near = [each for each in state.findings if each.terminal and each.source == source and each.role == "root"]
    last = max(near, key=lambda each: each.line, default=None)
    if last is None:
        return Block(source, number)
    told = last.weight >= blocks.CERTAIN
    return Block(source, number, raised=Raised(last.failure, last.weight, last.line, last.text, told), ended=True)


def read_last_words(
    state: DiagnosisState, number: int, line: str, catalogue: CompiledCatalogue, least: float
) -> DiagnosisState:
    """The state after a line from the end of a log without a cause: the kinds of words in it count."""
    carried = peel(unglued(line)[-1])
    text = catalogue.in_known_words(carried.text)
    matches = catalogue.matches(text)
    if matches is None:
        return state
    carried = Carried(text, carried.source, carried.level)
    known = [each for each in _evidence(carried, matches, raised=False, catalogue=catalogue) if each.role == "root"]
    best = max(known, key=lambda each: each.weight, default=None) or _worded(text, carried, catalogue, least=least)
    if best is None or "\n" in text:
        return state
    return _with_line(state, Line(number, line, carried.source, best, [], terminal=False))


def is_of_traceback(line: str) -> bool:
    """True for the lines of a traceback above what was raised."""
    text = peel(line).text
    return TRACEBACK in text or blocks.is_inner(text)


def _worded(text: str, carried: Carried, catalogue: CompiledCatalogue, *, least: float = 0.0) -> Weighed | None:
    """What the words of a line prove that names no exception and that no signature knows; None below ``least``."""
    if catalogue.matches(text) is None or is_talk(text, carried.level):
        return None
    proof = proof_of_words(text, catalogue)
    return None if proof is None or proof.weight < least else Weighed(proof.failure, "root", proof.weight)


_WHAT = LazyPattern(r"\s*what\(\):\s+(?P<message>\S.*)")
"""libstdc++: the message of the C++ exception that ended the program."""
_ERROR = LazyPattern(
    r"(?i:(?:[\w./-]+: )?(?:fatal|error|critical|abort(?:ed|ing)?|exception|fehler|erreur|ошибка)\b|错误|エラー)"
)
"""A line that is an error by its level, or by its first word."""


def _typed(
    state: DiagnosisState, number: int, named: Named, catalogue: CompiledCatalogue, *, with_message: bool
) -> Proof | None:
    """What the exception proves by its type, its message (``with_message``) and the line that raised it."""
    return proof_of(
        named,
        catalogue,
        configured=bool(state.config_read) and number - state.config_read <= NEAR_LINES,
        restored=bool(state.restored) and number - state.restored <= NEAR_LINES,
        with_message=with_message,
    )


def _with_raised(state: DiagnosisState, block: Block, line: Line, *, told: bool, reported: bool) -> DiagnosisState:
    """The state after a traceback's end: of a chain of exceptions one counts."""
    failure, weight = (line.best.failure, line.best.weight) if line.best is not None else ("", 0.0)
    mine = Raised(failure, weight, line.number, kept_text(line.text), told, reported)
    if block.before is not None and blocks.earlier_counts(block, block.before, mine):
        kept = msgspec.structs.replace(block, raised=block.before, ended=True, link="")
        return with_cascade_line(with_block(state, kept), mine.line, mine.text)
    if block.before is not None and block.before.failure:
        state = without_raised(state, block.before)
    state = with_block(state, msgspec.structs.replace(block, raised=mine, ended=True, link=""), hot=DETAIL_LINES)
    if not failure:
        return with_cascade_line(state, mine.line, mine.text)
    return _with_line(state, line)


def _with_line(state: DiagnosisState, line: Line) -> DiagnosisState:
    """The strongest root of a line counts, once; confirmations and consequences beside it if they add to it."""
    number, text, best = line.number, line.text, line.best
    if best is not None:
        mine = Finding(best.failure, "root", best.weight, number, text, number)
        mine = msgspec.structs.replace(mine, terminal=line.terminal, warned=best.warned, source=line.source)
        mine = msgspec.structs.replace(mine, told=best.told, place=line.place)
        state = with_finding(state, mine)
    for each in line.weighed:
        if each.role == "confirmation" and (best is None or each.failure == "success"):
            state = with_finding(state, Finding(each.failure, each.role, each.weight, number, text, number))
        elif each.role == "cascade" and best is None:
            state = with_cascade_line(state, number, text)
            if each.failure != "unknown":
                state = with_finding(state, Finding(each.failure, each.role, each.weight, number, text, number))
    return state


def _evidence(
    carried: Carried, matches: Iterable[Match], *, raised: bool, catalogue: CompiledCatalogue
) -> Iterator[Weighed]:
    """What the signatures, status codes and kernel messages in a line prove, if the line reports an event."""
    text, level = carried.text, carried.level
    for row, start, end in matches:
        own = row.weight >= OWN_WEIGHT  # a project's pattern says itself what is an event
        act = "event" if own else act_of(text, start, end, failure=row.failure, level=level, raised=raised)
        if act in EVIDENT:
            yield Weighed(row.failure, row.role, row.weight, act == "warning")
    for code in catalogue.codes.find(text):
        act = act_of(text, code.start, code.end, failure=code.failure, level=level, raised=raised)
        if act in EVIDENT:
            yield Weighed(code.failure, "root", code.weight, act == "warning")
    at = next((text.find(gate) for gate in KERNEL_GATES if gate in text), None)
    proof = None if at is None else read_kernel_line(text, catalogue)
    if at is None or proof is None or proof.failure == "unknown":
        return
    if act_of(text, at, len(text), failure=proof.failure, level="", raised=raised) == "event":
        yield Weighed(proof.failure, "root", proof.weight)


def _in_report(state: DiagnosisState, number: int, carried: Carried) -> bool:
    """Whether the line belongs to the details of what was raised, or to a report of a program's death."""
    if carried.level == "fatal" or (state.report and number - state.report <= REPORT_LINES):
        return True
    block = state.block(carried.source)
    return block is not None and block.raised is not None and 0 <= number - block.raised.line <= DETAIL_LINES


def _reads_config(text: str) -> bool:
    return any(word in text for word in CONFIG_READS) and text[:1] in " \t│[" and reads_configuration(text)
