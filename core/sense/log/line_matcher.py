"""Finds the matching lines of a block: the same lines as if each were searched alone, but faster if few match."""

import re
from collections.abc import Iterator

from .visible_text import CONTROL, visible

# As in visible_text, but never across a line end.
_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[ -/]+[0-~]|[0-~])")
_CONTROL_BYTES = bytes(code for code in (*range(32), 127) if code not in b"\t\n")
_CROSSES_LINES = re.compile(r"\\[AZ]|\(\?(?![:i)])|[+*?}]\+|\$|\^|\[\^")
"""Constructs that depend on line ends or match across them. Such patterns are searched line by line."""


class LineMatcher:
    """A pattern over blocks of whole lines."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self._pattern = pattern
        self._whole_blocks = not _CROSSES_LINES.search(pattern.pattern) and not pattern.flags & (
            re.MULTILINE | re.DOTALL | re.VERBOSE
        )
        # Whether a plain word occurs at all, ignoring case, is found ten times faster without a regular expression.
        literal = pattern.pattern.isascii() and pattern.pattern.replace(" ", "").isalnum()
        self._literal = pattern.pattern.lower().encode() if literal and pattern.flags & re.IGNORECASE else b""

    def numbers(self, block: bytes) -> Iterator[int]:
        """Numbers (from 0) of the matching lines of a block, in order. Only the last line may have no line end."""
        if not block:
            return
        if not self._whole_blocks or b"\r" in block:
            yield from self._line_by_line(block)
            return
        printed = block.translate(None, _CONTROL_BYTES)
        if self._literal and block.isascii() and b"\x1b" not in block and self._literal not in printed.lower():
            return
        text = block.decode("utf-8", "replace")
        if "\x1b" in text:
            text = _ESCAPE.sub("", text)
        if len(printed) != len(block):
            text = CONTROL.sub("", text)
        search, count = self._pattern.search, text.count
        at = number = 0
        while at <= len(text) and (hit := search(text, at)):
            begin = text.rfind("\n", at, hit.start()) + 1 or at
            end = text.find("\n", hit.start())
            end = len(text) if end < 0 else end
            if begin == len(text) and begin > 0:
                return  # after the last newline there is no line
            number += count("\n", at, begin)
            if hit.end() <= end or search(text[begin:end]):
                yield number
            number += 1
            at = end + 1

    def _line_by_line(self, block: bytes) -> Iterator[int]:
        search = self._pattern.search
        for number, line in enumerate(block.removesuffix(b"\n").split(b"\n")):
            if search(visible(line)):
                yield number
