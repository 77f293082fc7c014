"""Regular expressions that are compiled when they are first asked for: tables have hundreds, a log meets a dozen."""

import re
from collections.abc import Callable, Iterator


class LatePattern:
    """A pattern in waiting. ``search`` and ``finditer`` are those of ``re.Pattern`` and cost the same from then on."""

    __slots__ = ("finditer", "search", "text")

    search: Callable[..., re.Match[str] | None]
    finditer: Callable[..., Iterator[re.Match[str]]]

    def __init__(self, text: str) -> None:
        self.text = text
        self.search = self._search
        self.finditer = self._finditer

    def compiled(self) -> re.Pattern[str]:
        """The compiled pattern. Raises ``re.error`` where it is none."""
        made = re.compile(self.text)
        self.search, self.finditer = made.search, made.finditer
        return made

    def _search(self, *where: str | int) -> re.Match[str] | None:
        self.compiled()
        return self.search(*where)

    def _finditer(self, *where: str | int) -> Iterator[re.Match[str]]:
        self.compiled()
        return self.finditer(*where)
