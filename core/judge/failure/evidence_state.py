"""What was gathered from a log so far: findings, blocks in progress, ranks. Bounded and serialisable."""

from collections.abc import Iterator

import msgspec

from ...model.shipped import EvidenceLine
from ...model.text import LazyPattern, beginning
from ..text.lines import LineFold, plain
from ..text.reading import Reading
from .tracebacks import KEPT, Block, Finding, frame_of, marked

# Which rank of a distributed training ended first by itself, from what its launcher and its ranks print.
#
# When one rank ends, the others lose contact, and their errors are often printed first and are the most specific ones.
# torchrun's summary names the failure that it noticed first, which may be one of them. A rank that was ended by a
# signal which the launcher did not send, that raised an error of its own, or that exited without a word about lost
# contact, ended by itself; the lost contact is what follows.
#
# Source: torch.distributed.elastic prints the exit code and pid of each failed rank, and the pid of each rank it ends.

GATES = ("exitcode", "closing signal", "(local_rank:")
OTHERS = frozenset({1, 2, 6, 15})
"""Signals with which a rank is ended from outside, or by its own watchdog, because of another one."""
_END = LazyPattern(r"exitcode\s*:\s*(?P<code>-?\d+)\)?(?: local_rank: (?P<rank>\d+))? \(pid: (?P<pid>\d+)\)")
_NUMBER = LazyPattern(r"\brank\s*:\s*(?P<rank>\d+) \(local_rank: \d+\)")
"""A line of torchrun's summary, just above the one with the exit code and the pid of that rank."""
_CLOSED = LazyPattern(r"ending process (?P<pid>\d+) closing signal")


class RankEnd(msgspec.Struct, frozen=True):
    """How one rank ended. ``code`` negative = signal; ``rank``: its number, None = not printed.

    ``sure``: the number is that of the whole run; else it is the one on its machine.
    """

    pid: int
    code: int
    rank: int | None
    line: int
    text: str
    sure: bool = False


class RankEnds(msgspec.Struct, frozen=True):
    """``closed``: pids that the launcher ended because of another one."""

    ends: tuple[RankEnd, ...] = ()
    closed: tuple[int, ...] = ()
    named: int | None = None
    """The rank that the line before named."""


NO_ENDS = RankEnds()


def with_line(found: RankEnds, number: int, line: str) -> RankEnds:
    if (closed := _CLOSED.search(line)) is not None:
        return msgspec.structs.replace(found, closed=(*found.closed, int(closed["pid"]))[:KEPT])
    if (named := _NUMBER.search(line)) is not None:
        return msgspec.structs.replace(found, named=int(named["rank"]))
    end = _END.search(line)
    if end is None:
        return found
    pid, told = int(end["pid"]), found.named
    known = next((each for each in found.ends if each.pid == pid), None)
    local = None if end["rank"] is None else int(end["rank"])
    mine = known or RankEnd(pid, int(end["code"]), local, number, beginning(line.strip(), 200))
    if told is not None and not mine.sure:
        mine = msgspec.structs.replace(mine, rank=told, sure=True)
    others = [mine if each is known else each for each in found.ends]
    return msgspec.structs.replace(found, ends=(*others, *([] if known else [mine]))[:KEPT], named=None)


def killed(found: RankEnds) -> RankEnd | None:
    """The first rank that a signal ended by itself."""
    for each in found.ends:
        if each.code < 0 and -each.code not in OTHERS and each.pid not in found.closed:
            return each
    return None


def exited(found: RankEnds, victims: set[str]) -> RankEnd | None:
    """The only rank that exited with a code of its own. ``victims``: the ranks that say they lost contact.

    None if the lines do not tell it apart from a victim: one of them without a rank, or ends without a rank among
    which a victim's may be.
    """
    if "" in victims or not (victims or found.closed):
        return None
    own = [each for each in found.ends if each.pid not in found.closed and str(each.rank) not in victims]
    if len(own) != 1 or own[0].code <= 0:
        return None
    named = {str(each.rank) for each in found.ends}
    return own[0] if own[0].rank is not None or victims <= named else None


GENERIC = 0.5
"""Weight from which evidence is more than a hint."""
CASCADE_KEPT = 12
FINDINGS_KEPT = 200
TEXT_KEPT = 400
"""Characters kept of an evidence line."""
DETAILS_KEPT = 2
"""Lines kept of a message that goes on below what was raised."""
PLACE_LINES = 12
"""Lines below what was raised that may say where."""
HANDLED_LINES = 2
"""A report this far above the words "trying again" is what they speak of."""
TAIL_CHARS = 6000
"""Characters kept of the end of the log."""
HOT_SEGMENTS = 12
"""Segments read after evidence although no gate opens for them: the details of a message."""


class DiagnosisState(msgspec.Struct, frozen=True):
    """Evidence so far. ``watch``: progress since the first evidence, None before it.

    ``kernel``: the newest kernel lines that match a failure class, whatever the log says about the same class.
    ``config_read``, ``restored``: the newest line that read a configuration, read a checkpoint; 0 = none. ``beats``:
    the lines of the last two steps after the first evidence. ``unraised``: the newest line that begins the report of an
    exception that ended nothing. ``traceback``: the newest line that begins a traceback; ``traced``: the newest
    exception at the end of one. ``blocks``: tracebacks, by rank or process.
    ``hot``: segments that are read whether or not a gate opens for them. ``report``: the newest line with which a
    program reported its death; ``fenced``: the line on which a quotation of several lines began; ``tail``: the last
    text. ``header``: the newest line that begins with a file and a line outside a traceback, and both as ``file:line``.
    """

    fold: LineFold = LineFold()
    findings: tuple[Finding, ...] = ()
    survived: tuple[Finding, ...] = ()
    cascade: tuple[EvidenceLine, ...] = ()
    watch: Reading | None = None
    config_read: int = 0
    restored: int = 0
    kernel: tuple[str, ...] = ()
    beats: tuple[int, ...] = ()
    unraised: int = 0
    traceback: int = 0
    traced: int = 0
    ranks: RankEnds = NO_ENDS
    blocks: tuple[Block, ...] = ()
    hot: int = 0
    report: int = 0
    fenced: int = 0
    tail: str = ""
    header: tuple[int, str] = (0, "")

    @property
    def end(self) -> str:
        """The last text, with the unfinished line."""
        return self.tail + self.fold.rest

    def last_lines(self) -> Iterator[tuple[int, str]]:
        """The last lines with text, the newest first: the number, and the plain text, of a bar as it is now."""
        lines = self.end.split("\n")
        whole = lines if len(self.tail) < TAIL_CHARS else lines[1:] or lines  # the first may be the end of a long line
        for back, line in enumerate(reversed(whole)):
            text = plain(line.rstrip("\r").rpartition("\r")[2])
            if text.strip():
                yield self.fold.lines + 1 - back, text.rstrip()

    def of_class(self, failure: str) -> Finding | None:
        """The first finding of a class."""
        return next((each for each in self.findings if each.failure == failure), None)

    def block(self, source: str) -> Block | None:
        """The newest traceback of a rank or process."""
        return next((each for each in self.blocks if each.source == source), None)


def with_block(state: DiagnosisState, block: Block, *, hot: int = 0) -> DiagnosisState:
    """Put the block in the place of the one of the same rank or process."""
    others = tuple(each for each in state.blocks if each.source != block.source)
    return msgspec.structs.replace(state, blocks=(*others, block)[-KEPT:], hot=max(state.hot, hot))


def kept_text(line: str) -> str:
    """A line as it is kept; one that is cut ends with an ellipsis."""
    text = line.strip()
    return text if len(text) <= TEXT_KEPT else f"{text[: TEXT_KEPT - 1]}…"


def with_finding(state: DiagnosisState, mine: Finding) -> DiagnosisState:
    """The state with one more piece of evidence. Per class and kind the strongest is kept, of equals the first."""
    beats = state.watch.heartbeats if state.watch is not None else 0
    mine = msgspec.structs.replace(mine, text=kept_text(mine.text), beats=beats)
    kept: list[Finding] = []
    for each in state.findings:
        if _kind(each) != _kind(mine):
            kept.append(each)
        elif mine.weight > each.weight:
            mine = msgspec.structs.replace(mine, count=each.count + 1)
        else:
            mine = msgspec.structs.replace(each, last=mine.line, count=each.count + 1, beats=beats)
    watch = state.watch
    if watch is None and mine.failure != "success" and (mine.role != "cascade" or mine.weight >= GENERIC):
        watch = Reading()
    hot = state.hot if mine.role == "confirmation" else max(state.hot, HOT_SEGMENTS)
    return msgspec.structs.replace(state, findings=(*kept, mine)[:FINDINGS_KEPT], watch=watch, hot=hot)


def _kind(each: Finding) -> tuple[str, str, bool, bool, str]:
    return each.failure, each.role, each.terminal, each.warned, each.source


def with_detail(state: DiagnosisState, source: str, number: int, text: str) -> DiagnosisState:
    """The state after a line in which an exception's message may go on: that ended with a colon, this is indented."""
    for each in state.findings:
        goes_on = each.role == "root" and each.source == source and each.text.endswith(":") and text[:1] in " \t"
        if goes_on and len(each.details) < DETAILS_KEPT and each.line + len(each.details) + 1 == number:
            return _changed(state, each, details=(*each.details, kept_text(text)))
    return state


def _changed(state: DiagnosisState, finding: Finding, **fields: object) -> DiagnosisState:
    told = msgspec.structs.replace(finding, **fields)
    return msgspec.structs.replace(state, findings=tuple(told if e is finding else e for e in state.findings))


def with_place(state: DiagnosisState, source: str, number: int, text: str) -> DiagnosisState:
    """The state after a line that may say where the exception above it was raised.

    The mark of a parser counts more than a frame, the first frame more than the next: faulthandler prints the newest
    one first.
    """
    mark, frame = marked(text), frame_of(text)
    place = mark or (frame.place if frame is not None and frame.own else "")
    near = [e for e in state.findings if e.terminal and e.source == source and 0 < number - e.line <= PLACE_LINES]
    last = max(near, key=lambda each: each.line, default=None)
    return state if not place or last is None or (last.place and not mark) else _changed(state, last, place=place)


def without_raised(state: DiagnosisState, raised: Finding) -> DiagnosisState:
    """The state without the evidence of an exception that was not the cause; its line becomes a consequence."""
    kept = tuple(each for each in state.findings if (each.failure, each.line) != (raised.failure, raised.line))
    return with_cascade_line(msgspec.structs.replace(state, findings=kept), raised.line, raised.text)


def without_handled(state: DiagnosisState, number: int) -> DiagnosisState:
    """The state without what was reported on the lines just before ``number``, which says that the program goes on."""
    handled = [each for each in state.findings if each.role == "root" and not each.terminal]
    handled = [each for each in handled if each.line > 0 and number - each.last <= HANDLED_LINES]
    if not handled:
        return state
    kept = tuple(each for each in state.findings if each not in handled)
    return msgspec.structs.replace(state, findings=kept, survived=(*state.survived, *handled)[-CASCADE_KEPT:])


def with_cascade_line(state: DiagnosisState, number: int, line: str) -> DiagnosisState:
    """The state with one more line that follows from the failure."""
    if len(state.cascade) >= CASCADE_KEPT or any(each.line == number for each in state.cascade[-1:]):
        return state
    return msgspec.structs.replace(state, cascade=(*state.cascade, EvidenceLine(number, kept_text(line))))
