"""A log's text as finished lines and the unfinished rest; any chunking gives the same state.

A carriage return ends a segment as a newline does: a progress bar that redraws itself is a row of segments on one
line. Only newlines count as lines, so line numbers are those an editor shows.
"""

import re
from collections.abc import Iterable, Iterator

import msgspec

from ...model.patterns import LazyPattern

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

    def segments(self) -> Iterator[tuple[int, int, str]]:
        """Line number, offset of its end in ``text``, and plain text of each segment that is not empty, in order."""
        number, at = self.first_line, 0
        for line in self.text.split("\n"):
            if "\r" in line:
                start = at
                for part in line.split("\r"):
                    if part:
                        yield number, start + len(part), plain(part)
                    start += len(part) + 1
            elif line:
                yield number, at + len(line), plain(line)
            number += 1
            at += len(line) + 1


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
    """Fixed texts and patterns; each line with relevant content has at least one.

    ``any``: the same as one pattern; ``common``: the literal to try first. ``keys``: for each literal the longest part
    of it that cannot be split over two words ("" = none). ``pairs``: a line with two numbers as a position and its
    end passes, too.
    """

    literals: tuple[str, ...]
    keys: tuple[bytes, ...]
    patterns: tuple[LazyPattern, ...]
    any: LazyPattern
    common: str = ""
    pairs: bool = False


def gate_of(pattern: str) -> str:
    """A project's pattern as one gate of several: its groups without names; "" if it has a back reference."""
    return "" if _REFERENCE.search(pattern) else _NAMED_GROUP.sub("(?:", pattern)


_NAMED_GROUP = LazyPattern(r"\(\?P<\w+>")
_REFERENCE = LazyPattern(r"\(\?P=|\\[1-9]|\(\?\(")


PAIR_FORM = r"(?<![\w./:\-+])[BbIiSs]?\d+\s?/\s{0,8}\d+(?![\w./:\-]|\s\d\d?:\d\d)"
"""What may be a position and its end, without a name: "12/90", "12 / 90"; no date, no path."""
NAMED_OF_FORM = r"(?:^|[\]\-:|>])[ \t]{0,8}[Ii][Tt][ :#=]{1,3}\d+ (?:out )?of \d+(?![\w./:\-])(?=.*\d\.\d)"
"""The same in words, "it 12 of 90  L=0.5": only behind the one name of a step that is no gate, at the head of a message
that measures something. "file 3 of 20" and "fold 2 of 5" stand in any log."""


def gates_of(literals: Iterable[str], patterns: Iterable[str] = (), *, pairs: bool = False) -> Gates:
    """Compile gates. A literal that contains another one is dropped: the shorter one finds its lines, too."""
    kept: list[str] = []
    for literal in sorted(set(literals), key=lambda text: (len(text), text)):
        if not any(shorter in literal for shorter in kept):
            kept.append(literal)
    rows = tuple(patterns)
    common = "<" if "<" in kept else kept[0]
    forms = (PAIR_FORM, NAMED_OF_FORM) if pairs else ()
    every = "|".join([*_by_first_letters(kept), *(f"(?:{row})" for row in rows), *forms])
    compiled = tuple(LazyPattern(row, re.MULTILINE) for row in rows)
    keys = tuple(max(literal.encode().translate(_SPACED, _DIGITS).split(), key=len, default=b"") for literal in kept)
    return Gates(tuple(kept), keys, compiled, LazyPattern(every or r"(?!)", re.MULTILINE), common, pairs)


def _by_first_letters(literals: Iterable[str]) -> list[str]:
    """The literals as patterns, those with the same first letter in one group: a third of the time to search."""
    groups: dict[str, list[str]] = {}
    for literal in sorted(set(literals)):
        groups.setdefault(literal[0], []).append(literal[1:])
    return [
        re.escape(first + rest[0]) if len(rest) == 1 else f"{re.escape(first)}(?:{'|'.join(map(re.escape, rest))})"
        for first, rest in groups.items()
    ]


_HEAD = 1 << 15
"""Bytes that are compared to find out whether lines differ in their numbers only."""
_DIGITS = b"0123456789:,.-"
_SPACED = bytes.maketrans(b"=/|[]()_'\"{}<>\r", b" " * 15)
"""Characters between words. Digits are removed, for they make most words of a log differ, and what stands in times."""


LEAST_START = 6
"""Bytes with which lines have to begin alike, so that this is cut off."""


def _common_start(lines: list[bytes]) -> bytes:
    """The whole words with which all lines begin."""
    if not lines:
        return b""
    first, last = min(lines), max(lines)
    end = next((at for at, (one, other) in enumerate(zip(first, last, strict=False)) if one != other), len(first))
    return first[: first.rfind(b" ", 0, end) + 1]


def _present_literals(text: str, gates: Gates) -> list[str]:
    """The literals that may be in ``text``: those whose key is part of one of its distinct words.

    A log repeats its words, so a search in the few hundred distinct ones replaces one scan of the whole text for each
    of fifty literals. This is twice as fast, and no literal in the text is missed.
    """
    plain_text = text.encode(errors="surrogatepass").translate(_SPACED, _DIGITS)
    head = plain_text[:_HEAD].split(b"\n")
    if 2 * len(set(head)) < len(head):
        plain_text = b"\n".join(set(plain_text.split(b"\n")))  # the same lines with other numbers: three times as fast
    elif len(start := _common_start(head[1:9])) >= LEAST_START:
        plain_text = start + plain_text.replace(b"\n" + start, b"\n")  # what the logger writes before each message
    words = b"\n".join(set(plain_text.split()))
    return [literal for literal, key in zip(gates.literals, gates.keys, strict=True) if key in words]


def shape_of(line: str) -> bytes:
    """The line with every digit set to one: the same for all lines that differ in their numbers only."""
    return line.encode(errors="surrogatepass").translate(_ONES)


_ONES = bytes.maketrans(b"023456789", b"1" * 9)


def lines_with(done: Finished, gates: Gates) -> Iterator[tuple[int, int, str]]:
    """Like ``Finished.segments``, but only segments that pass ``gates``.

    A literal that is in no word of the text is skipped; the others are searched with ``str.find`` (about 1.5 GB/s),
    because one regular expression for all of them runs at a tenth of that.
    """
    text = done.text
    passes = gates.any.search
    if len(text) < SMALL or "\x1b" in text or "\x08" in text or is_dense(text, gates):
        common = gates.common
        for number, end, line in done.segments():
            if common in line or passes(line):
                yield number, end, line
        return
    flat = text.replace("\r", "\n") if "\r" in text else text
    starts: set[int] = set()
    for literal in _present_literals(flat, gates):
        at = flat.find(literal)
        while at >= 0:
            starts.add(flat.rfind("\n", 0, at) + 1)
            end = flat.find("\n", at)
            at = flat.find(literal, end) if end >= 0 else -1
    if gates.pairs:
        starts.update(_pair_lines(flat))
    for pattern in gates.patterns:
        starts.update(flat.rfind("\n", 0, found.start()) + 1 for found in pattern.finditer(flat))
    number, counted = done.first_line, 0
    for start in sorted(starts):
        end = flat.find("\n", start)
        number += text.count("\n", counted, start)
        counted = start
        end = end if end >= 0 else len(flat)
        line = plain(flat[start:end])
        if passes(line):  # the gate may stand beyond the cap
            yield number, end, line


_PAIR = LazyPattern(PAIR_FORM)
_DIVIDED = LazyPattern(r"/(?:(?P<date>\d\d?/\d)|[ \t]{0,8}(?=\d))")
"""What divides a pair, or the rest of a date, which is skipped whole. It begins with a fixed character, so that the
search for it is as fast as ``str.find``."""


_OF = LazyPattern(r" of (?=\d)")
_NAMED = LazyPattern(r"[Ii][Tt][ :#=]{1,3}\d+(?: out)?$")
NAME_CHARS = 24
"""Characters before " of " that hold the name and the count."""


def _pair_lines(flat: str) -> Iterator[int]:
    """Starts of lines that may have a pair."""
    for found in _OF.finditer(flat):
        before = flat[max(0, found.start() - NAME_CHARS) : found.start()]
        if _NAMED.search(before) is not None:
            yield flat.rfind("\n", 0, found.start()) + 1
    end = -1
    for found in _DIVIDED.finditer(flat):
        at = found.start()
        if at < end or found["date"] or not flat[max(0, at - 2) : at].rstrip()[-1:].isdigit():
            continue
        start, end = flat.rfind("\n", 0, at) + 1, flat.find("\n", at)
        end = len(flat) if end < 0 else end
        if _PAIR.search(flat, start, end) is not None:
            yield start


def is_dense(text: str, gates: Gates) -> bool:
    """True if so many segments pass that a look at each is cheaper than one scan per literal."""
    head = text[:SMALL].replace("\r", "\n").split("\n")
    return 4 * sum(1 for line in head if gates.any.search(line)) > len(head)


SMALL = 4096
"""Shorter texts (a redraw or a few lines) are read segment by segment: scanning costs more, in characters."""
