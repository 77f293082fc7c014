"""Regular expressions that compile at their first use: tables have hundreds, and one log needs a dozen."""

import re
from collections.abc import Callable, Iterator
from typing import Any

METHODS = ("search", "match", "fullmatch", "finditer", "split", "sub")


GAP_CHARS = 300
"""Characters between two parts of one message. Why a bound: "a.*b" tries the rest of a line from each "a" in it."""
_ANYTHING = re.compile(r"(?<!\\)\.\*")


def bounded(pattern: str) -> str:
    """The pattern of a table with at most ``GAP_CHARS`` where it allows any text."""
    return _ANYTHING.sub(f".{{0,{GAP_CHARS}}}", pattern)


class LazyPattern:
    """A regular expression that is not compiled yet.

    Its methods are those of ``re.Pattern`` and cost the same from the first use on. Until then it has none: each would
    be an object of its own, six for each of the 2,000 patterns of the tables (3 MB).
    """

    __slots__ = ("_compiled", "_flags", "finditer", "fullmatch", "match", "search", "split", "sub", "text")

    search: Callable[..., re.Match[str] | None]
    match: Callable[..., re.Match[str] | None]
    fullmatch: Callable[..., re.Match[str] | None]
    finditer: Callable[..., Iterator[re.Match[str]]]
    split: Callable[..., list[str]]
    sub: Callable[..., str]

    def __init__(self, text: str, flags: int = 0) -> None:
        self.text = text
        self._flags = flags
        self._compiled: re.Pattern[str] | None = None

    def __getattr__(self, name: str) -> Any:
        """A method that is not there yet. Raises ``re.error`` if ``text`` is not a regular expression."""
        if name not in METHODS:
            raise AttributeError(name)
        return getattr(self.compiled(), name)

    def compiled(self) -> re.Pattern[str]:
        """The compiled pattern. Raises ``re.error`` if ``text`` is not a regular expression."""
        if self._compiled is None:
            made = self._compiled = re.compile(self.text, self._flags)
            self.search, self.match, self.fullmatch = made.search, made.match, made.fullmatch
            self.finditer, self.split, self.sub = made.finditer, made.split, made.sub
        return self._compiled
