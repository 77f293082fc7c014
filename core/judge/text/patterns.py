"""Regular expressions that are compiled when they are first asked for: tables have hundreds, a log meets a dozen."""

import re
from collections.abc import Callable, Iterator


class LatePattern:
    """A pattern in waiting. Its methods are those of ``re.Pattern`` and cost the same from the first use on."""

    __slots__ = ("_flags", "_made", "finditer", "match", "search", "sub", "text")

    search: Callable[..., re.Match[str] | None]
    match: Callable[..., re.Match[str] | None]
    finditer: Callable[..., Iterator[re.Match[str]]]
    sub: Callable[..., str]

    def __init__(self, text: str, flags: int = 0) -> None:
        self.text = text
        self._flags = flags
        self._made: re.Pattern[str] | None = None
        self.search = lambda *given: self.compiled().search(*given)
        self.match = lambda *given: self.compiled().match(*given)
        self.finditer = lambda *given: self.compiled().finditer(*given)
        self.sub = lambda *given: self.compiled().sub(*given)

    def compiled(self) -> re.Pattern[str]:
        """The compiled pattern. Raises ``re.error`` where it is none."""
        if self._made is None:
            made = self._made = re.compile(self.text, self._flags)
            self.search, self.match, self.finditer, self.sub = made.search, made.match, made.finditer, made.sub
        return self._made
