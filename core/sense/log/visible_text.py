"""The text of a log line as a terminal shows it."""

import re

LINE_CHARS = 4000
"""Longest line that is shown. Markup of longer lines makes a terminal slow."""

# CSI sequences, OSC and other strings, the rest.
_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]+[0-~]|[0-~])")
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def visible(raw: bytes) -> str:
    r"""Decode one line: its last state after ``\r``, without escape sequences and control characters."""
    text = _ESCAPE.sub("", raw.decode("utf-8", "replace"))
    if "\r" in text:
        text = next((state for state in reversed(text.split("\r")) if state.strip()), "")
    text = CONTROL.sub("", text).rstrip()
    return text if len(text) <= LINE_CHARS else text[: LINE_CHARS - 1] + "…"
