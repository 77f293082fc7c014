"""The end of a log without a known cause, as a skeleton that the same end gives again, and as a pattern to teach."""

import re

from ...model.text.patterns import LazyPattern
from ..text.carriers import peel, unglued
from ..text.lines import plain

KEPT_CHARS = 160
_VARIES = LazyPattern(
    r"(?P<quoted>\"[^\"]*\"|(?<!\w)'[^']*')|(?P<address>0x[0-9a-fA-F]+|\b[0-9a-f]{8,}\b)|(?P<path>(?<![\w.])(?:[A-Za-z]:)?[/\\][^\s:,)\]]+)"
    r"|(?P<number>\d+(?:[.,:]\d+)*)"
)
"""What differs between two occurrences of one message."""
_BAR = LazyPattern(r"\d%\s?\||\b(?:it/s|s/it)\b")
_ENDS = LazyPattern(r"[\r\n]+")


def last_line(tail: str) -> str:
    """The last line with words that is no bar, without the prefixes of its carriers; "" if there is none."""
    for line in reversed(_ENDS.split(tail)):
        text = peel(unglued(plain(line))[-1]).text.strip()
        if re.search(r"[^\W\d_]{2}", text) and not _BAR.search(text):
            return text
    return ""


def skeleton_of(line: str) -> str:
    """The line with ``#`` for each part that differs between two occurrences."""
    return _VARIES.sub("#", line)[:KEPT_CHARS]


def words_of(line: str) -> str:
    """The line with ``#`` for its numbers, addresses and paths; what it quotes counts, but for quoted paths."""

    def kept(found: re.Match[str]) -> str:
        return found[0] if found.lastgroup == "quoted" and "/" not in found[0] else "#"

    return _VARIES.sub(kept, line)[:KEPT_CHARS]


def pattern_of(line: str) -> str:
    """A regular expression for this line and for lines that differ from it in numbers, names and places only."""
    text, made, at = line[:KEPT_CHARS], "", 0
    for found in _VARIES.finditer(text):
        made += re.escape(text[at : found.start()]) + _FOR[found.lastgroup or ""]
        at = found.end()
    return (made + re.escape(text[at:])).replace("\\ ", " ")


_FOR = {
    "quoted": r"""["'].*?["']""",
    "address": r"(?:0x)?[0-9a-fA-F]+",
    "path": r"\S+",
    "number": r"\d+(?:[.,:]\d+)*",
}
