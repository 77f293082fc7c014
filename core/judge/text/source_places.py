"""Places in source files that a log names: the frames of a traceback, the mark of a parser of settings.

Forms: ``File "F", line N, in f`` (traceback.py; without ``, in`` the header of a syntax error; faulthandler without the
comma), ``│ F:N in f`` (rich, typer), ``File F:N, in f`` (IPython), ``in "F", line N`` (PyYAML), ``file: 'F', line: N``
(configparser).
"""

import re
from typing import NamedTuple

from ...model.text.patterns import LazyPattern

GATE = 'File "'
"""Stands in the header of a syntax error that no traceback announces."""
_FRAME = LazyPattern(
    r'\s*File "(?P<file>[^"]*)", line (?P<line>\d+)(?:,? in (?P<function>.*))?'
    r"|\s*[│|]\s*(?P<boxed>[^\s│|][^│|]*?):(?P<row>\d+) in (?P<name>[^\s│|]+)\s*[│|]?\s*$"
    r"|\s*File (?P<shown>[^\s\"]\S*?):(?P<at>\d+),? in (?P<called>.*)"
)
_MARK = LazyPattern(
    r"""\s+in "(?P<file>[^"<][^"]*)", line (?P<line>\d+)\b|file: '(?P<quoted>[^'<][^']*)', line: (?P<row>\d+)"""
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


def frame_of(text: str) -> Frame | None:
    """The frame that the line names, None if it names none."""
    found = _FRAME.match(text)
    if found is None:
        return None
    file, line = found["file"], found["line"]
    if file is None:
        file, line = (found["boxed"], found["row"]) if found["boxed"] else (found["shown"], found["at"])
    return Frame(file, int(line), found["function"] or found["name"] or found["called"] or "")


def marked(text: str) -> str:
    """Where a parser of settings stopped, as ``F:N``; "" if the line does not say."""
    found = _MARK.match(text)
    if found is None:
        return ""
    return f"{found['file']}:{found['line']}" if found["file"] else f"{found['quoted']}:{found['row']}"


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
