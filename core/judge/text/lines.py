"""A log's text as finished lines, and each line without what carries it: container, journal, launcher and logger.

Any chunking gives the same lines. A carriage return ends a segment as a newline does: a progress bar that redraws
itself is a row of segments on one line. Only newlines count as lines, so line numbers are those an editor shows.

Two kinds of carriers. A *transport* (CRI, Docker and journald as JSON, syslog, compose, ranks, Ray, srun) is put before
every line, whatever it says: ``own_text`` removes it and leaves the line as it was printed. What a logger writes (time,
level, name, place in the source) is part of the line, and tells its level: ``peel`` removes both kinds, in any nesting,
and keeps what they tell. ``unglued`` divides a line on which a bar and a message stand together.
"""

import json
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from ...model.text import LazyPattern

LINE_CAP = 8_192
"""Characters of one segment that are read. Why: a JSON dump or a binary blob without newlines must not grow the state;
the longest lines of a library, verl's metrics of one step, have 6,000. The rest is not read, whatever the chunking."""
LONG = 200
"""Characters from which on a segment is squeezed. Shorter ones cost nothing, whatever they hold."""
_RUNS = LazyPattern(r"(?<!\s)([^\S\n]{8})[^\S\n]++|(?<![^\s,;])([^\s,;]{256})[^\s,;]++|(?<![,;])([,;]{8})[,;]++")
"""Runs of blanks, words, and runs of commas: 8, 256 and 8 characters of them are kept. Why: a pattern that takes two
parts of one run tries each way to divide it, so that a padded column or a blob in base64 costs seconds a line. No
field, bar, path or number that is read is longer, and what divides two columns stays two blanks."""

_ESCAPES = LazyPattern(r"\x1b(?:\[[0-?]*[ -/]*[@-~]?|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])?|[\x07\x08\x00]")
"""CSI and OSC sequences (ECMA-48), bells, and the backspaces with which Keras erases its bar."""


class LineFold(msgspec.Struct, frozen=True):
    """``rest``: the text after the last line end; ``lines``: newlines so far."""

    rest: str = ""
    lines: int = 0


class Finished(msgspec.Struct, frozen=True):
    """Text whose every segment is finished, and the number (from 1) of the line its first character stands on.

    ``text`` is as written, carriage returns kept, so that lines can be counted.
    """

    text: str
    first_line: int

    def placed(self) -> Iterator[tuple[int, str, int]]:
        """Line number and plain text of each segment that is not empty, and where in ``text`` the next one begins."""
        at = 0
        for number, line in enumerate(self.text.split("\n"), self.first_line):
            for part in line.split("\r") if "\r" in line else (line,):
                at += len(part) + 1
                if part:
                    yield number, plain(part), at


def fold(state: LineFold, text: str) -> tuple[LineFold, Finished]:
    """Append ``text``; return the new state and the segments that it finished (their text may be empty)."""
    cut = max(text.rfind("\n"), text.rfind("\r")) + 1
    first = state.lines + 1
    if not cut:
        return LineFold(f"{state.rest}{text}"[:LINE_CAP], state.lines), Finished("", first)
    done = f"{state.rest}{text[:cut]}" if state.rest else text[:cut]
    return LineFold(text[cut:][:LINE_CAP], state.lines + text.count("\n", 0, cut)), Finished(done, first)


def plain(segment: str) -> str:
    """The segment without escape sequences, cut to ``LINE_CAP``, its long runs squeezed: what every reader gets."""
    if len(segment) > LINE_CAP:
        segment = segment[:LINE_CAP]
    if "\x1b" in segment or "\x08" in segment or "\x07" in segment or "\x00" in segment:
        segment = _ESCAPES.sub("", segment)
    return _RUNS.sub(r"\1\2\3", segment) if len(segment) > LONG else segment


class Gates(msgspec.Struct, frozen=True):
    """Fixed texts, and patterns of a project (``own``), of which each line with relevant content has at least one.

    ``pairs``: a line with two numbers as a position and its end passes, too.
    """

    literals: tuple[str, ...]
    own: tuple[LazyPattern, ...] = ()
    pairs: bool = False

    def passes(self, line: str) -> bool:
        return (
            any(map(line.__contains__, self.literals))
            or (self.pairs and _has_pair(line))
            or any(pattern.search(line) is not None for pattern in self.own)
        )

    def among(self, text: str) -> "Gates | None":
        """The gates that a line of ``text`` may pass, None if none passes any: a log repeats its words.

        A literal that stands in ``text`` has its longest part, between what divides words, in one of its words.
        """
        if len(text) < SMALL or "\x1b" in text or "\x08" in text:  # an escape sequence may divide a word
            return self
        kinds = _spaced(text).split(b"\n")
        if 2 * len(set(kinds[:LIKE])) < LIKE:  # the same lines with other numbers
            kinds = list(set(kinds))
        words = b"\n".join(set(b" ".join(kinds).split()))
        keys = ((each, max(_spaced(each).split(), key=len, default=b"")) for each in self.literals)
        present = tuple(each for each, key in keys if key in words and each in text)
        if not present and not self.own and not (self.pairs and _has_pair(text)):
            return None
        return replace(self, literals=present)


SMALL = 4096
"""Shorter texts (a redraw or a few lines) are read with all gates, in characters."""
LIKE = 256
"""Lines of which most are alike if all are."""
_DIGITS = b"0123456789:,.-"
_SPACED = bytes.maketrans(b"=/|[]()_'\"{}<>\r", b" " * 14 + b"\n")
"""Characters between words. Digits are removed, for they make most words of a log differ, and what stands in times."""


def _spaced(text: str) -> bytes:
    return text.encode(errors="surrogatepass").translate(_SPACED, _DIGITS)


def gates_of(literals: Iterable[str], own: Iterable[str] = (), *, pairs: bool = False) -> Gates:
    """Make gates. A literal that contains another one is dropped: the shorter one finds its lines, too."""
    known = set(literals)
    kept = [each for each in known if sum(map(each.__contains__, known)) == 1]
    kept.sort(key=lambda text: (text != "<", len(text), text))  # each redraw of a bar has that one
    return Gates(tuple(kept), tuple(map(LazyPattern, own)), pairs)


PAIR_FORM = r"(?<![\w./:\-+])[BbIiSs]?\d+\s?/\s{0,8}\d+(?![\w./:\-]|\s\d\d?:\d\d)"
"""What may be a position and its end, without a name: "12/90", "12 / 90"; no date, no path."""
NAMED_OF_FORM = r"(?:^|[\]\-:|>])[ \t]{0,8}[Ii][Tt][ :#=]{1,3}\d+ (?:out )?of \d+(?![\w./:\-])(?=.*\d\.\d)"
"""The same in words, "it 12 of 90  L=0.5": only behind the one name of a step that is no gate, at the head of a message
that measures something. "file 3 of 20" and "fold 2 of 5" stand in any log."""
_PAIR, _NAMED_OF = LazyPattern(PAIR_FORM), LazyPattern(NAMED_OF_FORM, re.MULTILINE)


def _has_pair(text: str) -> bool:
    return ("/" in text and _PAIR.search(text) is not None) or (" of " in text and _NAMED_OF.search(text) is not None)


def shape_of(line: str) -> bytes:
    """The line with every digit set to one: the same for all lines that differ in their numbers only."""
    return line.encode(errors="surrogatepass").translate(_ONES)


_ONES = bytes.maketrans(b"023456789", b"1" * 9)


def is_dense(text: str, gates: Gates) -> bool:
    """True if so many segments of its beginning pass that it is read as a row of redraws."""
    head = text[:SMALL].replace("\r", "\n").split("\n")
    return 4 * sum(map(gates.passes, head)) > len(head)


DEEPEST = 8
"""Prefixes of one line that are removed. Real logs have up to five (journal, pod, rank, time, level)."""
_LETTERS = {"debug": "d", "info": "in", "warning": "w", "error": "es", "fatal": "cf"}
LEVELS = {letter: level for level, letters in _LETTERS.items() for letter in letters}
"""By the first letter: D/DEBUG, I/INFO, NOTICE, W/WARN/WARNING, E/ERR/ERROR, SEVERE, CRITICAL, F/FATAL."""

_TIME = r"\d{4}[-/.]\d\d[-/.]\d\d[ T_]\d\d:\d\d:\d\d(?:[.,:]\d+)?(?:Z|\s?[+-]\d\d:?\d\d)?"
_LEVEL = r"(?P<level>DEBUG|INFO|NOTICE|WARN(?:ING)?|ERR(?:OR)?|CRITICAL|FATAL|SEVERE)"
_OF_A_STEP = r"(?!(?:(?:train\w*|avg|mean)[ _]?)?loss(?:\s*[:=]|\s+is)?\s*(?:[-\d]|nan|inf)|\d+\.\d)"
"""What does not follow the label of a rank: "120: loss 0.4" and "120: 0.4" are steps."""
_TRANSPORT = LazyPattern(
    rf"(?:{_TIME}\s(?:stdout|stderr)\s[FP]\s"  # CRI: containerd, Kubernetes
    # syslog, journald
    r"|[A-Z][a-z]{2}\s[\s\d]\d\s\d\d:\d\d:\d\d(?:\.\d+)?\s[\w.-]+\s[\w./@-]+(?:\[(?P<pid>\d+)\])?:\s"
    rf"|{_TIME}\s[\w.-]+\s(?:[\w./@-]+\[(?P<unit>\d+)\]|kernel):\s"
    r"|(?!(?i:epoch|ep|step|iter|batch|round))[\w.-]+[-_]\d+\s{2,}\|\s"  # docker compose: trainer-1  | …
    r"|\[(?i:default|rank)[ :]{0,2}(?P<a>\d+)\]:?\s?"  # torch: [rank3]:   torchrun --tee: [default3]:   Lightning
    r"|(?i:default|rank)\s?(?P<b>\d+)\s?[:|]\s?"
    rf"|\[(?P<c>\d{{1,4}})\]: {_OF_A_STEP}"  # accelerate, torchrun
    r"|\[\d+,(?P<d>\d+)\]<std\w+>:?\s?"  # mpirun --tag-output
    r"|\((?P<e>(?:[\w.]+ )*pid=\d+|raylet)[^)]*\)\s?"  # Ray
    rf"|(?P<f>\d{{1,4}}): {_OF_A_STEP})"  # srun --label
)
_RANKS = tuple("abcdef")
"""Groups that name a rank."""
_LOGGER = LazyPattern(
    r"(?:\[\s*\d+\.\d{3,6}\]\s"  # dmesg
    r"|[a-z][\w.-]*\d:\s(?=\[|\d{4}-|Traceback|\s+File|[\w.]+(?:Error|Exception)\b)"  # pdsh, clush
    # glog, c10, TensorFlow; Optuna
    r"|\[?(?P<glog>[DIWEF])\d{0,8}\s(?:\d\d:\d\d:\d\d[.\d]*\s+)?(?:\d+\s+)?"
    rf"(?:[\w/.<>-]+(?::\d+)?|{_TIME})\](?:\s\[\w+\])?\s?"
    rf"|\[?{_TIME}\]?[\s:|,-]*(?:\d+\s)?(?=\S|\s{{2}})"
    r"|\[?\d\d:\d\d:\d\d(?:[.,]\d+)?\]?[\s|-]+(?![\d:<])"
    rf"|\[?{_LEVEL}\b\s?\]?(?:\s*[:|-]|\s*\|\s*\S+:\S+:\d+\s-)?\s"
    rf"|\|\s(?={_LEVEL.replace('?P<level>', '?:')}\b)"  # fairseq: | WARNING: …
    rf"|[\w.]+(?:\[\d+\])?:\s(?={_LEVEL.replace('?P<level>', '?:')}\b)"  # wandb: ERROR …
    r"|\[[\w.<>-]+(?::\d+)?(?::[\w<>]+)?\]\s(?=\[|\S+\s)(?<=\d\]\s)|\[[\w.]+:\d+:\w+\]\s"  # [launch.py:10:main]
    rf"|{_LEVEL.replace('?P<level>', '?P<named>')}:[\w.]+:"  # logging.basicConfig: ERROR:root:…
    r"|[\w.]+\s-\s(?:(?P<late>DEBUG|INFO|WARNING|ERROR|CRITICAL)\s-\s)?)"  # logging: name - LEVEL - …
)


class Carried(NamedTuple):
    """A line without all that carries it, and what its carriers told.

    ``text``: the trainer's own text, several lines if a JSON record holds them. ``source``: the rank or process that
    printed it, "" = not named. ``level``: debug, info, warning, error or fatal; "" = not named.
    """

    text: str
    source: str = ""
    level: str = ""


def own_text(line: str) -> Carried:
    """The line as it was printed, and the rank that it names: indentation and what a logger writes are kept."""
    own = peel(line, loggers=False)
    if not own.source and "rank" in own.text[:10].lower() and (named := _RANK_WORD.match(own.text)) is not None:
        return own._replace(source=named["rank"])
    return own


_RANK_WORD = LazyPattern(r"\s*\[?(?i:rank)[ :]{0,2}(?P<rank>\d+)\]?:?\s")
"""A rank that the trainer itself names first."""


def peel(line: str, *, loggers: bool = True) -> Carried:
    """The line without the prefixes of its carriers. Indentation behind them is kept.

    ``loggers`` False: only transports are taken off, and only a rank is a source.
    """
    text, source, level = line, "", ""
    for _ in range(DEEPEST):
        if not text or text[0] in " \t":
            break
        if text[0] == "{":
            if (opened := _record(text)) is None:
                break
            text, level = opened.text, opened.level or level
            source = opened.source or source if loggers else source
            if "\n" in text:
                break
            continue
        found = _TRANSPORT.match(text)
        if found is not None:
            rank = found[found.lastgroup] if found.lastgroup in _RANKS else ""
            source = rank or source or (loggers and (found["pid"] or found["unit"])) or ""
        elif loggers and (found := _LOGGER.match(text)) is not None and found.end() > 0:
            named = found["level"] or found["glog"] or found["late"] or found["named"]
            level = LEVELS[named[0].lower()] if named else level
        else:
            break
        text = text[found.end() :]
    return Carried(text, source, level)


_UPPER = r"(?P<level>DEBUG|INFO|NOTICE|WARN(?:ING)?|ERR(?:OR)?|CRITICAL|FATAL|SUCCESS|TRACE)"
_PLACE = (
    r"(?=[A-Za-z/~.<])(?:[\w<>-]{0,60}[./\\][\w./\\<>-]{0,160}:\d+(?::[\w<>]+)?|[\w./\\<>-]{1,160}\(\d+\)"
    r"|[\w./-]{1,160}:\w[\w.<>]{0,60}:\d+)"
)
"""A file or module with a line: "a/train.py:12", "a.train:main:42", "launch.py:10:main", "train.py(12)"."""
_NAMES = LazyPattern(
    # all that stands before a level, and what divides the level from the rest
    rf"\A(?:(?:[^\n]{{0,160}}?(?<![^\s\[|(:<-]))??{_UPPER}(?=[\s\]|:>)-])(?: *\](?:\s[-:])?|\s*\||\s+-|:)?\s*"
    r"|\[?[DIWEF]\d{0,8}\s(?:\d\d:\d\d:\d\d[.\d]*\s+)?(?:\d+\s+)?[\w/.<>-]{1,160}(?::\d+)?\]\s?"  # glog, absl
    r"|\[(?:debug|info|warning|error|critical) *\]\s+"  # structlog
    rf"|{_PLACE}(?:\]|:)?(?:\s(?:[-|]|>>)|[:\]])?(?:\s+|$)"
    rf"|\[(?:{_PLACE}|[Rr]ank \d+|[A-Za-z]\w*[_./-][\w./-]*|[a-z]+\d+)\](?:\s?[-:]\s|\s+)?"
    r"|\((?:[\w./-]+ )*pid=\d+[^)]{0,80}\)\s?"
    rf"|\[[^\s|\]\[]{{1,40}}\|[^\s\]\[]{{1,80}}\]\s*(?:>>\s)?"
    r"|(?:\d{2,4}[-/.]\d\d(?:[-/.]\d{2,4})?[T _])?\d\d:\d\d:\d\d(?:[.,:-]\d+)?Z?\]?[\s|,:-]+(?![\d:<])"
    r"|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \S+ [\w./@-]+(?:\[\d+\])?: "
    r"|>>\s"
    # a name of several parts that is divided from the rest as a logger divides
    r"|(?!\S+\.(?:safetensors|bin|json|pth?|ckpt|gguf|parquet|zip|model|txt):)"
    r"[A-Za-z]\w*(?:[./-]\w+)+(?:\s-\s|:\s|\s\|\s)(?![-+\d'\"]))"
)
_AFTER_LEVEL = LazyPattern(
    r"(?!(?i:eval(?:uation)?|val(?:id(?:ation)?)?|test(?:ing)?|dev|inference)\s)"
    r"[A-Za-z][\w./-]*\s-\s|(?!(?i:\w*(?:epoch|step|iter|batch|loss|lr)))"
    r"(?:[A-Za-z][\w./-]{0,80}:\d+\s|[A-Za-z]\w{0,40}[_./-][\w./-]{0,80}:(?![-+\d'\"]|\s+[-+\d'\"])\s?)"
)
"""Behind the level: "INFO - my_run - …", "INFO my_run: …", "INFO train:12 …". A single word before a colon ("INFO
resume: …"), or a word of evaluation before a dash, may be the message's own."""
_BASIC = LazyPattern(r"[\w./-]+:(?=\S)")
"""Behind "INFO:"."""
_TAIL = LazyPattern(r"(?:\s{2,}[\w./-]+\.py:\d+|\s\[[\w./-]*[./][\w.-]+\]|\s(?:->|=>|to|in)\s/\S+|\slogger=\S+)\s*$")
"""Where rich, structlog and others name the place or the logger."""


def message_of(line: str) -> str:
    """What the trainer says in a line without transports: no time, no level, no name of a logger, module or file.

    Those are names that a person chose: "eval" among them says nothing about the line. A single word before a colon
    ("INFO valid: loss 0.5") stays: it may be the message's, which the count behind it shows (``line_reading.judged``).
    """
    text = line
    for _ in range(DEEPEST):
        found = _NAMES.match(text)
        if found is None or found.end() == 0 or found.end() == len(text):
            break
        text = text[found.end() :]
        if found["level"]:
            behind = _BASIC if found[0].endswith(":") else _AFTER_LEVEL
            named = None if _NAMES.match(text) else behind.match(text)
            text = text if named is None else text[named.end() :]
    tail = _TAIL.search(text)
    return text if tail is None else text[: tail.start()]


_MESSAGES = ("message", "msg", "log", "MESSAGE", "event", "text")
_TRACES = (
    *("exc_info", "exc", "exc_text", "err", "error", "stack", "detail"),
    *("exception", "stack_trace", "traceback", "stacktrace"),
)
_SOURCES = ("rank", "local_rank", "pod", "container", "process", "_PID", "pid", "host")
_SAMPLES = ("prompt", "completion", "response", "question", "answer", "instruction")
"""Names in a sample of a dataset."""
_MEASURED = frozenset(("loss", "step", "steps", "iter", "iteration", "epoch", "lr", "metrics"))
"""Words in the names of numbers of a training step."""
_NAME_PARTS = LazyPattern(r"[^a-z]+")


def _record(text: str) -> Carried | None:
    """A log record in JSON; None for other JSON, such as the numbers of a training step or a sample of a dataset.

    A record that holds the numbers of a step beside its message is the trainer's own.
    """
    if '"' not in text or not text.rstrip().endswith("}"):
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    message = next((words for name in _MESSAGES if (words := _words(found.get(name))) is not None), None)
    inner = (pair for value in found.values() if isinstance(value, dict) for pair in value.items())
    measured = any(
        isinstance(value, int | float | dict) and not _MEASURED.isdisjoint(_NAME_PARTS.split(str(name).lower()))
        for name, value in chain(found.items(), inner)
    )
    if message is None or measured or any(name in found for name in _SAMPLES):
        return None
    traces = [found[name] for name in _TRACES if isinstance(found.get(name), str)]
    level = next((found[name] for name in ("level", "levelname", "severity", "lvl") if found.get(name)), "")
    source = next((str(found[name]) for name in _SOURCES if isinstance(found.get(name), str | int)), "")
    lines = "\n".join((message, *traces)).replace("\r\n", "\n").replace("\r", "\n").strip("\n")
    return Carried(lines, source, LEVELS.get(str(level)[:1].lower(), ""))


def _words(value: object) -> str | None:
    """The message of a record: journalctl gives one with escape sequences as a list of bytes."""
    if isinstance(value, list) and value and all(isinstance(each, int) and 0 <= each < 256 for each in value):
        return bytes(value).decode(errors="replace")
    return value if isinstance(value, str) else None


_TO_ITS_END = r"[^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*\]"
REST_OF_BAR = LazyPattern(rf"\A{_TO_ITS_END}")
"""From behind its bracket. Only there: sought at each character, it would take the square of a line."""
_BAR = LazyPattern(
    rf"(?:\|\s*[\d.,]+[kKMG]?\w*/[\d.,?]+[kKMG]?\w*|\b\d+[a-zA-Z]\w*)\s\[(?=\d*:?\d\d:\d\d|\?){_TO_ITS_END}"
)
"""tqdm: ``| 612/2900 [12:01<…, avr_loss=0.1]`` or ``29948it [35:34, 7.00s/it]``."""
_STAMP = LazyPattern(r"(?<=[\w.])\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+: [IWEF] ")
"""The first characters of a line of TensorFlow, printed behind the last number of a Keras bar."""
TRACEBACK = "Traceback (most recent call last)"


def unglued(text: str) -> tuple[str, ...]:
    """The pieces of a line: a bar, and what was printed behind it without a line end."""
    cut = 0
    if "[" in text:
        for found in _BAR.finditer(text):
            cut = found.end()
        stamp = _STAMP.search(text, 1)
        cut = cut if stamp is None else max(cut, stamp.start())
    at = text.find(TRACEBACK)
    if at > 0 and (text[at - 1].isalnum() or text[:at].rstrip()[-1:] in ("]", ")", "%", ">", "$")):
        cut = max(cut, at)
    if not cut or not text[cut:].strip():
        return (text,)
    return text[:cut], text[cut:] if cut == at else text[cut:].lstrip()
