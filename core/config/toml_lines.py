"""The line of each key of a TOML document. Neither ``tomllib`` nor tomlkit gives positions.

The text must already have been accepted by ``tomllib``: this scanner finds keys and skips values.
"""

import re
import tomllib

KeyPath = tuple[str | int, ...]
"""Keys from the root; an int is the index in an array."""

_SPACE = re.compile(r"[ \t]*")
_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_SCALAR = re.compile(r"[^,\]}#\r\n]*")
_STRINGS = (
    re.compile(r'"""(?:[^\\]|\\.)*?"""(?:"{0,2})', re.DOTALL),
    re.compile(r"'''.*?'''(?:'{0,2})", re.DOTALL),
    re.compile(r'"(?:[^"\\\n]|\\.)*"'),
    re.compile(r"'[^'\n]*'"),
)


def key_lines(text: str) -> dict[KeyPath, int]:
    """Return the line (from 1) where each table, key and array element first appears."""
    return _Scanner(text).document()


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.lines: dict[KeyPath, int] = {}
        self.arrays: dict[KeyPath, int] = {}

    def document(self) -> dict[KeyPath, int]:
        prefix: KeyPath = ()
        self._skip(_BLANK)
        while self.at < len(self.text):
            if self.text[self.at] == "[":
                prefix = self._header()
            else:
                self._pair(prefix)
            self._skip(_BLANK)
        return self.lines

    def _header(self) -> KeyPath:
        double = self.text.startswith("[[", self.at)
        start = self.at
        self.at += 2 if double else 1
        path = self._inside_arrays(self._keys(()), whole=not double)
        self.at += 2 if double else 1
        if double:
            index = self.arrays.get(path, -1) + 1
            self.arrays[path] = index
            self._note(path, start)
            path = (*path, index)
        self._note(path, start)
        return path

    def _inside_arrays(self, path: KeyPath, *, whole: bool) -> KeyPath:
        """A header below an array of tables belongs to its newest element."""
        inside: KeyPath = ()
        for number, key in enumerate(path, 1):
            inside = (*inside, key)
            if inside in self.arrays and (whole or number < len(path)):
                inside = (*inside, self.arrays[inside])
        return inside

    def _pair(self, prefix: KeyPath) -> None:
        start = self.at
        path = self._keys(prefix)
        self._note(path, start)
        self.at += 1  # the "="
        self._value(path)

    def _keys(self, prefix: KeyPath) -> KeyPath:
        path = prefix
        while True:
            self._skip(_SPACE)
            path = (*path, self._key())
            self._skip(_SPACE)
            if self.text[self.at : self.at + 1] != ".":
                return path
            self.at += 1

    def _key(self) -> str:
        quote = self.text[self.at]
        if quote in "\"'":
            start = self.at
            self._string()
            return next(iter(tomllib.loads(f"{self.text[start : self.at]} = 0")))
        start = self.at
        self._skip(_BARE_KEY)
        if self.at == start:
            raise ValueError(f"no key at offset {start}")
        return self.text[start : self.at]

    def _value(self, path: KeyPath) -> None:
        self._skip(_BLANK)
        match self.text[self.at : self.at + 1]:
            case '"' | "'":
                self._string()
            case "[":
                self._sequence(path, "]")
            case "{":
                self._sequence(path, "}")
            case _:
                self._skip(_SCALAR)

    def _sequence(self, path: KeyPath, end: str) -> None:
        self.at += 1
        index = 0
        while True:
            self._skip(_BLANK)
            if self.text[self.at] == end:
                self.at += 1
                return
            if end == "]":
                self._note((*path, index), self.at)
                self._value((*path, index))
                index += 1
            else:
                self._pair(path)
            self._skip(_BLANK)
            if self.text[self.at] == ",":
                self.at += 1

    def _string(self) -> None:
        for pattern in _STRINGS:
            found = pattern.match(self.text, self.at)
            if found:
                self.at = found.end()
                return
        raise ValueError(f"no string at offset {self.at}")

    def _skip(self, pattern: re.Pattern[str]) -> None:
        found = pattern.match(self.text, self.at)
        assert found is not None or pattern is _BARE_KEY
        if found:
            self.at = found.end()

    def _note(self, path: KeyPath, offset: int) -> None:
        line = self.text.count("\n", 0, offset) + 1
        for length in range(1, len(path) + 1):
            self.lines.setdefault(path[:length], line)
