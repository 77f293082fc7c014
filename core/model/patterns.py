"""Regular expressions that compile at their first use: tables have hundreds, and one log needs a dozen."""

import functools
import re
from collections.abc import Callable, Iterator, Sequence
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


# Shell patterns for paths below a folder, as presets use them.


def matches(path: str, globs: Sequence[str]) -> bool:
    """Whether a relative path (with ``/``) matches one of the patterns; without patterns every path does.

    ``*`` and ``?`` stand for anything but ``/``, ``**/`` for any folders or none.

    >>> matches("samples/epoch_1/a.png", ["samples/**/*.png"])
    True
    """
    return not globs or _compiled(tuple(globs)).fullmatch(path) is not None


@functools.cache
def _compiled(globs: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(_expression(glob) for glob in globs))


def _expression(glob: str) -> str:
    parts = re.split(r"(\*\*/|\*|\?)", glob)
    return "".join({"**/": "(?:.*/)?", "*": "[^/]*", "?": "[^/]"}.get(part, re.escape(part)) for part in parts)
