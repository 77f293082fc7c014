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
    """A regular expression that is not compiled yet. Its methods are those of ``re.Pattern``.

    They cost the same from the first use on. Until then it has none: six objects for each of the 2,000 patterns of the
    tables take 3 MB.
    """

    __slots__ = ("_flags", "text", *METHODS)

    search: Callable[..., re.Match[str] | None]
    match: Callable[..., re.Match[str] | None]
    fullmatch: Callable[..., re.Match[str] | None]
    finditer: Callable[..., Iterator[re.Match[str]]]
    split: Callable[..., list[str]]
    sub: Callable[..., str]

    def __init__(self, text: str, flags: int = 0) -> None:
        self.text = text
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        if name not in METHODS:
            raise AttributeError(name)
        made = self.compiled()
        for method in METHODS:
            setattr(self, method, getattr(made, method))
        return getattr(self, name)

    def compiled(self) -> re.Pattern[str]:
        """The compiled pattern. Raises ``re.error`` if ``text`` is not a regular expression."""
        return re.compile(self.text, self._flags)


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
    signs = {"**/": "(?:.*/)?", "*": "[^/]*", "?": "[^/]"}
    split = [re.split(r"(\*\*/|[*?])", glob) for glob in globs]
    return re.compile("|".join("".join(signs.get(part) or re.escape(part) for part in parts) for parts in split))
