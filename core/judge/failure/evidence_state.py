"""What was gathered from a log so far: findings, tracebacks, exceptions, ranks. Bounded and serialisable."""

import builtins
import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from functools import lru_cache
from operator import attrgetter
from typing import Literal, NamedTuple

import msgspec
from msgspec.structs import replace

from ...model.text import LazyPattern, beginning
from ..scales import KEPT, LINE_CHARS, LISTED, SURE, TWICE
from ..text.lines import LineFold, plain
from .catalogue import CHECKPOINT_READS, SIGNALS, CompiledCatalogue, Proof

# Reports of several lines: tracebacks with their chain, C++ ``terminate``, Rust panics, fatal checks.
#
# A traceback is followed per rank or process. Its indented lines are quoted code; the first other line names what was
# raised. Chained exceptions come down to one of them (``earlier_counts``).
#
# Sources: traceback.py and PEP 3134 (``__cause__``, ``__context__``), libstdc++ ``__verbose_terminate_handler``, Rust
# ``std::panic``, glog ``CHECK``.

Link = Literal["", "handling", "direct"]
LINKS: dict[str, Link] = {
    "During handling of the above exception, another exception occurred": "handling",
    "The above exception was the direct cause of the following exception": "direct",
}
"""What Python prints between two chained exceptions."""
EQUAL = 0.12
"""Pieces of evidence that differ less in weight are equally strong; the first one is the cause."""
_WITH_ERRNO = LazyPattern(r"[\w.]+: \[Errno \d+\]")
OPENS_REPORT = LazyPattern(
    r"\s*(?:terminate called|what\(\):|thread '[^']*' (?:\(\d+\) )?panicked at|\*\*\* (?:Check failure|SIG|Aborted)"
    r"|Check failed:|Fatal Python error|Uncaught exception|Unhandled exception|\[rank\d+\]\S* Fatal"
    r"|[Uu]sage: \S|Could not (?:override|append to config))"
)
"""A line with which a program reports its own death."""


class Finding(msgspec.Struct, frozen=True):
    """The best evidence of one kind for one class. ``line`` 0: from the kernel log. ``last``: the newest line of it.

    ``beats``: steps until the newest of this kind; ``over``: the newest line by then that said the end, 0 = none;
    ``heard``: ordinary lines by then. ``terminal``: it stands at the end of a traceback or of another report of a
    program's death. ``warned``: the line is a warning. ``told``: its words say so, not the type of an exception alone.
    ``source``: the rank or process that printed it. ``details``: the first lines in which its message goes on.
    ``place``: ``file:line`` of the user's own code or settings that raised it. ``reported``: raised by a library that
    reports or uploads. ``failure`` "": it proves nothing.
    """

    failure: str
    role: str
    weight: float
    line: int
    text: str
    last: int
    count: int = 1
    beats: int = 0
    over: int = 0
    heard: int = 0
    terminal: bool = False
    warned: bool = False
    told: bool = True
    source: str = ""
    details: tuple[str, ...] = ()
    place: str = ""
    reported: bool = False

    @property
    def of_a_helper(self) -> bool:
        """Whether its line names a process of Ray, or a thread or a JVM: the exit status is that of another one."""
        return self.source == "raylet" or "pid=" in self.source or self.text.startswith("Exception in thread ")


class Block(msgspec.Struct, frozen=True):
    """A traceback in progress, or the last one, of one rank or process. ``line``: of its beginning, then of its end.

    ``beats``, ``over``: as of a finding. ``first``: file and function of its first frame, which is the one that caught
    the exception if another follows. ``last``: of its newest frame; ``library``: ``first`` lies in an installed
    package; ``raises``: the newest source line is a ``raise``; ``code``: what is quoted of the newest frame's
    source; ``own``: ``file:line`` of the newest frame in the user's own code.
    """

    source: str
    line: int = 0
    beats: int = 0
    over: int = 0
    link: Link = ""
    before: Finding | None = None
    before_first: str = ""
    before_library: bool = False
    first: str = ""
    last: str = ""
    library: bool = False
    raises: bool = False
    code: str = ""
    own: str = ""
    raised: Finding | None = None
    ended: bool = False


def begin(found: Block | None, source: str, number: int) -> Block:
    """The block that a traceback's first line begins; it continues the chain of ``found``."""
    if found is None or not found.link:
        return Block(source, number)
    link, before = found.link, found.raised
    return Block(source, number, link=link, before=before, before_first=found.first, before_library=found.library)


def with_inner(block: Block, text: str) -> Block:
    """Take an indented line of an open traceback."""
    frame = frame_of(text)
    if frame is None:
        words = text.strip().lstrip("│|❱ ")
        raises = words.startswith("raise ") or (block.raises and words[:1] in "~^")
        if words[:1] in "~^":  # "" too
            return block if raises == block.raises else replace(block, raises=raises)
        code = f"{block.code} {words}".strip()[:LINE_CHARS]
        return replace(block, raises=raises, code=code)
    place = f"{frame.file}:{frame.function}"
    own = frame.place if frame.own else block.own
    library = block.library if block.first else _INSTALLED.search(frame.file) is not None
    return replace(block, first=block.first or place, last=place, library=library, raises=False, code="", own=own)


def ended(block: Block, number: int, text: str) -> Block:
    """The block after an exception that only wraps another one, which follows."""
    return replace(block, raised=Finding("", "root", 0.0, number, text[:80], number), ended=True, link="")


def is_inner(text: str) -> bool:
    """True for the lines between a traceback's first line and what was raised."""
    return not text or text[0] in " \t│|╭╰❱" or text.startswith(("File ", "+-", "~", "^", '"""', "'''"))


def earlier_counts(block: Block, before: Finding, raised: Finding) -> bool:
    """Whether an earlier exception of the chain is the cause, not the one that follows it.

    What was raised first counts, with three exceptions. A handler that raises at once names what it caught in its own
    words: these count if they tell more. A library that catches a missing key or attribute, or a program that catches
    a missing package, goes on with its normal work, and what fails there has another cause (Triton and Dynamo look into
    a cache this way). An errno that is sure says what the operating system refused: no handler words what it caught so.
    """
    if not before.failure:
        return False
    if not raised.failure:
        return True
    if block.link == "direct" or (block.raises and block.last == block.before_first):
        return (before.told and before.weight > raised.weight - EQUAL) or not raised.told or raised.reported
    missing = before.failure == "import_error" and raised.told and raised.weight >= SURE
    errno = raised.weight >= SURE and _WITH_ERRNO.match(raised.text) is not None
    told = before.told and not missing and before.weight >= max(SURE, raised.weight - EQUAL)
    return told or not (missing or errno or block.before_library) or raised.reported


# Python exceptions in a log: the line that names the type, on any rank, with or without a box, and what it proves.
#
# The type counts less than a message that a signature knows. Of a generic type the words of the message count, so that
# a library that no signature knows is understood, too; such weights stay below what counts as sure.

CONFIGURED = LazyPattern(
    r"\b(?:args|cfg|config|conf|opts?|params|hparams|hyp|settings|options|FLAGS)(?:\[|\.\w+\[|\.get\()"
)
"""A source line that reads arguments or a configuration: its KeyError is a config error."""
_HUMP = LazyPattern(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_OF_CONFIG = frozenset({"KeyError", "AttributeError", "AssertionError", "ValueError"})
"""Types that mean a wrong configuration if the line that raised them read one."""
CONTEXT_WEIGHT = 0.75
"""What the source line that raised an exception proves."""


class RaisedAt(NamedTuple):
    """An exception named in a line. ``type`` without its module; ``message`` may be empty."""

    type: str
    module: str
    message: str


def find_exception(line: str, catalogue: CompiledCatalogue) -> RaisedAt | None:
    """The exception that the line (without rank prefix) names, None if it names none. Warnings are not exceptions."""
    found = catalogue.exception_line.search(line)
    if found is None:
        return None
    raised = _raised(found)
    bare = raised.type in ("Error", "Failed", "Timeout", "Exit", "Interrupt") and not raised.module
    return None if raised.type.endswith("Warning") or bare else raised


_ANY = LazyPattern(r"(?P<type>(?:[A-Za-z_]\w*\.)+_?[A-Z]\w*|_?[A-Z][a-z]\w*[A-Z]\w*)(?:: (?P<message>.*))?$")


def any_exception(line: str) -> RaisedAt | None:
    """The exception that ends a traceback, whatever its type is called; None if the line does not look like one."""
    found = _ANY.match(line)
    return None if found is None else _raised(found)


def _raised(found: re.Match[str]) -> RaisedAt:
    module, _, kind = found["type"].rpartition(".")
    return RaisedAt(kind, module, found["message"] or "")


def proof_of(raised: RaisedAt, catalogue: CompiledCatalogue, code: str, *, with_message: bool = True) -> Proof | None:
    """What an exception proves; None for consequences of another failure.

    ``code``: the source that raised it. ``with_message`` False: a signature knows the message, so its words do not
    count again.
    """
    kind = raised.type
    if kind in catalogue.consequences:
        return None
    if kind == "KeyError" and any(word in code for word in CHECKPOINT_READS):
        return Proof("checkpoint_mismatch", CONTEXT_WEIGHT, told=True)
    if kind in _OF_CONFIG and CONFIGURED.search(code) is not None:
        return Proof("config_error", CONTEXT_WEIGHT, told=True)
    known = catalogue.exceptions.get(kind)
    generic = kind in catalogue.generic_exceptions
    if known is None or generic:
        inner = find_exception(raised.message, catalogue)
        # Julia's LoadError, a handler of its own, a RuntimeError of Paddle
        if inner is not None and inner.type != kind and (not generic or catalogue.names_mechanism(inner.type)):
            return proof_of(inner, catalogue, code, with_message=with_message)
    if with_message and (known is None or kind == "KeyError" or generic):
        known = proof_of_message(kind, raised.message, catalogue) or known
    if known is not None:
        return known
    proofs = [catalogue.exceptions[name] for name in catalogue.exception_patterns if fnmatchcase(kind, name)]
    module = raised.module
    while module and module not in catalogue.modules:
        module = module.rpartition(".")[0]
    proofs += [catalogue.modules[module]] if module else []
    return max(proofs, key=lambda proof: proof.weight, default=None)


MESSAGE_CHARS = 240
"""Characters of a message whose words count. Behind them stand dumps of objects."""
_ADDRESS = LazyPattern(r"(?P<host>\bhttps?://[\w.:-]+)/\S*")
"""The words of a page's path say nothing of what happened."""
_VALUE = LazyPattern(
    r"(?:\b[a-z]\w*=\S+|'[^']*'|\"[^\"]*\"|`[^`]*`|\b[a-z]\w*_\w+\b)"
    r"(?= (?:is|are|was|were) not | is an? (?:in|un)| must | should | cannot be )"
)
"""A value that is refused, or the name of a setting: its words say nothing either."""


_CHOICES = LazyPattern(r"(?P<words>\bmust be(?: one of| either)?|\bone of|\bchoose from)\s*[\[('\"].*")
"""The values that are allowed, and what was given."""
_COUNT = LazyPattern(r"(?<![\d.])\d{4,9}(?![\d.])|\b0x[0-9a-f]{4,}\b|\b\d+\.\d{2,}\b", re.IGNORECASE)
"""Steps, sizes and addresses: no table has such numbers, and a message that returns differs in them only."""


def proof_of_message(kind: str, message: str, catalogue: CompiledCatalogue) -> Proof | None:
    """What the words of an exception prove, None if nothing. ``kind``: its type, without the module.

    Of a type that is not generic the words of its name count, too: ``ServerDisconnectedError``.
    """
    if kind == "KeyError" and " " not in message:
        return next((proof for pattern, proof in catalogue.key_errors if pattern.match(message)), None)
    return _proof_of_shape(kind, _COUNT.sub("1000", message[:MESSAGE_CHARS]), catalogue)


@lru_cache(maxsize=1024)
def _proof_of_shape(kind: str, message: str, catalogue: CompiledCatalogue) -> Proof | None:
    message = _CHOICES.sub(r"\g<words> 'value'", message)
    message = _VALUE.sub("'value'", _ADDRESS.sub(r"\g<host>", message))
    low = (message if kind in catalogue.generic_exceptions else f"{_HUMP.sub(' ', kind)}: {message}").lower()
    return next((proof for pattern, proof in catalogue.messages if pattern.search(low) is not None), None)


# Places in source files that a log names: the frames of a traceback, the mark of a parser of settings.
#
# Forms: ``File "F", line N, in f`` (traceback.py; without ``, in`` the header of a syntax error; faulthandler without
# the comma), ``│ F:N in f`` (rich, typer), ``File F:N, in f`` (IPython), ``in "F", line N`` (PyYAML), ``file: 'F',
# line: N`` (configparser).

_FRAMES = (
    LazyPattern(r'\s*File "(?P<file>[^"]*)", line (?P<line>\d+)(?:,? in (?P<function>.*))?'),
    LazyPattern(r"\s*[│|]\s*(?P<file>[^\s│|][^│|]*?):(?P<line>\d+) in (?P<function>[^\s│|]+)\s*[│|]?\s*$"),
    LazyPattern(r"\s*File (?P<file>[^\s\"]\S*?):(?P<line>\d+),? in (?P<function>.*)"),
)
_MARKS = (
    LazyPattern(r'\s+in "(?P<file>[^"<][^"]*)", line (?P<line>\d+)\b(?P<function>)'),
    LazyPattern(r"file: '(?P<file>[^'<][^']*)', line: (?P<line>\d+)(?P<function>)"),
)
_INSTALLED = LazyPattern(r"[/\\](?:site|dist)-packages[/\\]|[/\\]lib[/\\]python\d|[/\\]Lib[/\\]\w+\.py$|^<")
_ENTRY = LazyPattern(r"[/\\]s?bin[/\\][^/\\.]+$")
"""A script that pip made for a command: ``bin/accelerate``."""


class Frame(NamedTuple):
    """A frame of a traceback. ``function`` "": not told."""

    file: str
    line: int
    function: str = ""

    @property
    def own(self) -> bool:
        """Whether it lies in the user's own code: not in an installed package, nor in Python itself."""
        return _INSTALLED.search(self.file) is None and _ENTRY.search(self.file) is None

    @property
    def place(self) -> str:
        """``F:N``."""
        return f"{self.file}:{self.line}"


def frame_of(text: str, forms: Iterable[LazyPattern] = _FRAMES) -> Frame | None:
    """The place that a line names: a frame of a traceback, or where a parser of settings stopped (``_MARKS``)."""
    found = next((found for form in forms if (found := form.match(text)) is not None), None)
    return None if found is None else Frame(found["file"], int(found["line"]), found["function"] or "")


def placed(text: str, place: str) -> str:
    """``text (at train.py:12)``; the text alone if the place is not known, or if the text names it."""
    file, _, line = place.rpartition(":")
    name = short(file)
    said = re.search(rf"{re.escape(name)}(?::|\W{{0,3}}(?:on |at )?line:? ){line}\b", text) is not None
    return text if not place or said else f"{text} (at {name}:{line})"


def short(path: str) -> str:
    """The name of the file; with that of its folder if many files have it (``models/__init__.py``)."""
    parts = path.replace("\\", "/").split("/")
    return "/".join(parts[-2:] if parts[-1].startswith("__") else parts[-1:])


def is_of_the_system(line: str) -> bool:
    """Whether the line names an exception of the operating system (a file, a mount), by Python's own types."""
    kind = getattr(builtins, line.partition(":")[0].strip().rpartition(".")[2], None)
    return isinstance(kind, type) and issubclass(kind, OSError)


# Which rank of a distributed training ended first by itself, from what its launcher and its ranks print.
#
# When one rank ends, the others lose contact, and their errors are often printed first and are the most specific ones.
# torchrun's summary names the failure that it noticed first, which may be one of them. A rank that was ended by a
# signal which the launcher did not send, that raised an error of its own, or that exited without a word about lost
# contact, ended by itself; the lost contact is what follows.
#
# Source: torch.distributed.elastic prints the exit code and pid of each failed rank, and the pid of each rank it ends.

RANK_GATES = ("exitcode", "closing signal", "(local_rank:")
OTHERS = frozenset(SIGNALS[name] for name in ("SIGHUP", "SIGINT", "SIGABRT", "SIGTERM"))
"""Signals with which a rank is ended from outside, or by its own watchdog, because of another one."""
_END = LazyPattern(r"exitcode\s*:\s*(?P<code>-?\d+)\)?(?: local_rank: (?P<rank>\d+))? \(pid: (?P<pid>\d+)\)")
_NUMBER = LazyPattern(r"\brank\s*:\s*(?P<rank>\d+) \(local_rank: \d+\)")
"""A line of torchrun's summary, just above the one with the exit code and the pid of that rank."""
_CLOSED = LazyPattern(r"ending process (?P<pid>\d+) closing signal")


class RankEnd(msgspec.Struct, frozen=True):
    """How one rank ended. ``code`` negative = signal; ``rank``: in the whole run, else on its machine."""

    pid: int
    code: int
    rank: int | None
    line: int
    text: str

    @property
    def name(self) -> str:
        return f"Rank {self.rank} (pid {self.pid})" if self.rank is not None else f"The rank with pid {self.pid}"


class RankEnds(msgspec.Struct, frozen=True):
    """``closed``: pids that the launcher ended because of another one."""

    ends: tuple[RankEnd, ...] = ()
    closed: tuple[int, ...] = ()
    named: int | None = None
    """The rank that the line before named."""


def with_line(found: RankEnds, number: int, line: str) -> RankEnds:
    if (closed := _CLOSED.search(line)) is not None:
        return replace(found, closed=(*found.closed, int(closed["pid"]))[:KEPT])
    if (named := _NUMBER.search(line)) is not None:
        return replace(found, named=int(named["rank"]))
    end = _END.search(line)
    if end is None:
        return found
    pid, told = int(end["pid"]), found.named
    known = next((each for each in found.ends if each.pid == pid), None)
    local = None if end["rank"] is None else int(end["rank"])
    mine = known or RankEnd(pid, int(end["code"]), local, number, kept_text(line))
    mine = mine if told is None else replace(mine, rank=told)
    others = [mine if each is known else each for each in found.ends]
    return replace(found, ends=(*others, *([] if known else [mine]))[:KEPT], named=None)


def killed_rank(found: RankEnds) -> RankEnd | None:
    """The first rank that a signal ended by itself."""
    own = (each for each in found.ends if each.code < 0 and each.pid not in found.closed)
    return next((each for each in own if -each.code not in OTHERS), None)


def exited_rank(found: RankEnds, victims: set[str]) -> RankEnd | None:
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
FINDINGS_KEPT = 200
TAIL_CHARS = 6000
"""Characters kept of the end of the log."""


class DiagnosisState(msgspec.Struct, frozen=True, omit_defaults=True):
    """Evidence so far. ``steps``: of the training so far; ``since``: those until the first evidence, None before it.

    ``said``: words of the end after the newest step, ``over``: the newest line with them. ``heard``: lines that were
    read and tell of no failure. ``cascade``: lines that follow from one. ``kernel``: the newest kernel lines that match
    a failure class, whatever the log says about the same class. ``unraised``: the newest line that begins the report of
    an exception that ended nothing. ``blocks``: tracebacks, by rank or process. ``hot``: segments that are read whether
    or not a gate opens for them. ``report``: the newest line with which a program reported its death; ``fenced``: the
    line on which a quotation of several lines began; ``tail``: the last text. ``header``: the newest line that begins
    with a file and a line outside a traceback, and both as ``file:line``. ``above``: the newest line of source that
    reads settings or a checkpoint, of a traceback that began before the log.
    """

    fold: LineFold = LineFold()
    findings: tuple[Finding, ...] = ()
    survived: tuple[Finding, ...] = ()
    cascade: tuple[Finding, ...] = ()
    steps: int = 0
    since: int | None = None
    said: Finding | None = None
    over: int = 0
    heard: int = 0
    kernel: tuple[str, ...] = ()
    unraised: int = 0
    ranks: RankEnds = RankEnds()
    blocks: tuple[Block, ...] = ()
    hot: int = 0
    report: int = 0
    fenced: int = 0
    tail: str = ""
    header: tuple[int, str] = (0, "")
    above: tuple[int, str] = (0, "")

    def last_lines(self) -> Iterator[tuple[int, str]]:
        """The last lines with text, the newest first: the number, and the plain text, of a bar as it is now."""
        lines = f"{self.tail}{self.fold.rest}".split("\n")
        whole = lines if len(self.tail) < TAIL_CHARS else lines[1:] or lines  # the first may be the end of a long line
        for back, line in enumerate(reversed(whole)):
            text = plain(line.rstrip("\r").rpartition("\r")[2])
            if text.strip():
                yield self.fold.lines + 1 - back, text.rstrip()

    def block(self, source: str) -> Block | None:
        """The newest traceback of a rank or process."""
        return next((each for each in self.blocks if each.source == source), None)


def with_block(state: DiagnosisState, block: Block, *, hot: int = 0) -> DiagnosisState:
    """Put the block in the place of the one of the same rank or process."""
    others = tuple(each for each in state.blocks if each.source != block.source)
    block = replace(block, beats=state.steps, over=state.over)
    return replace(state, blocks=(*others, block)[-KEPT:], hot=max(state.hot, hot))


def kept_text(line: str) -> str:
    """A line as it is kept; one that is cut ends with an ellipsis."""
    return beginning(line.strip(), LINE_CHARS)


def with_finding(state: DiagnosisState, mine: Finding) -> DiagnosisState:
    """The state with one more piece of evidence. Per class and kind the strongest is kept, of equals the first."""
    mine = replace(mine, text=kept_text(mine.text), beats=state.steps, over=state.over, heard=state.heard)
    kept: list[Finding] = []
    for old in state.findings:
        if _KIND(old) != _KIND(mine):
            kept.append(old)
        elif mine.weight > old.weight:
            mine = replace(mine, count=old.count + 1)
        else:
            mine = replace(old, last=mine.line, count=old.count + 1, beats=mine.beats, over=mine.over, heard=mine.heard)
    since = state.since
    if since is None and (mine.role != "cascade" or mine.weight >= GENERIC):
        since = state.steps
    hot = state.hot if mine.role == "confirmation" else max(state.hot, LISTED)
    return replace(state, findings=(*kept, mine)[:FINDINGS_KEPT], since=since, hot=hot)


_KIND = attrgetter("failure", "role", "terminal", "warned", "source")


def with_following(state: DiagnosisState, source: str, number: int, text: str) -> DiagnosisState:
    """The state after a line below an exception, whose message may go on or which may say where that was raised.

    The message goes on if it ended with a colon and the line is indented. The mark of a parser counts more than a
    frame, the first frame more than the next: faulthandler prints the newest one first.
    """
    for each in state.findings:
        goes_on = each.role == "root" and each.source == source and each.text.endswith(":") and text[:1] in " \t"
        if goes_on and len(each.details) < TWICE and each.line + len(each.details) + 1 == number:
            state = _changed(state, each, details=(*each.details, kept_text(text)))
            break
    mark, frame = frame_of(text, _MARKS), frame_of(text)
    at = mark or (frame if frame is not None and frame.own else None)
    near = [e for e in state.findings if e.terminal and e.source == source and 0 < number - e.line <= LISTED]
    last = max(near, key=lambda each: each.line, default=None)
    return state if at is None or last is None or (last.place and not mark) else _changed(state, last, place=at.place)


def _changed(state: DiagnosisState, finding: Finding, **fields: object) -> DiagnosisState:
    told = replace(finding, **fields)
    return replace(state, findings=tuple(told if e is finding else e for e in state.findings))


def without_raised(state: DiagnosisState, raised: Finding) -> DiagnosisState:
    """The state without the evidence of an exception that was not the cause; its line becomes a consequence."""
    kept = tuple(each for each in state.findings if (each.failure, each.line) != (raised.failure, raised.line))
    return with_cascade_line(replace(state, findings=kept), raised.line, raised.text)


def without_handled(state: DiagnosisState, number: int) -> DiagnosisState:
    """The state without what was reported on the lines just before ``number``, which says that the program goes on."""
    handled = [each for each in state.findings if each.role == "root" and not each.terminal]
    handled = [each for each in handled if each.line > 0 and number - each.last <= TWICE]
    if not handled:
        return state
    kept = tuple(each for each in state.findings if each not in handled)
    return replace(state, findings=kept, survived=(*state.survived, *handled)[-LISTED:])


def with_cascade_line(state: DiagnosisState, number: int, line: str) -> DiagnosisState:
    """The state with one more line that follows from the failure."""
    if len(state.cascade) >= LISTED or any(each.line == number for each in state.cascade[-1:]):
        return state
    mine = Finding("", "cascade", 0.0, number, kept_text(line), number, beats=state.steps)
    return replace(state, cascade=(*state.cascade, mine))
