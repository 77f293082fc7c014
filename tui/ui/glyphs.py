"""The characters that the screen draws with, in Unicode and in ASCII."""

import os
from collections.abc import Mapping

import msgspec


class Glyphs(msgspec.Struct, frozen=True, kw_only=True):
    """Every character is one cell wide. ``eighths`` and ``bar`` rise from empty to full."""

    name: str
    levels: dict[str, str]
    marks: dict[str, str]
    eighths: str
    bar: str
    line: str
    band: str
    now: str
    mark: str
    hatch: str
    cursor_line: str
    expected: str
    done: str
    braille: bool
    cursor: str
    ellipsis: str
    dot: str


UNICODE = Glyphs(
    name="unicode",
    levels={"safe": "●", "warning": "▲", "danger": "✖", "underused": "○", "unknown": "–"},
    marks={
        "start": "├",
        "restart": "↻",
        "checkpoint": "◆",
        "bad_checkpoint": "◈",
        "crash": "✖",
        "hang": "◼",
        "danger": "▲",
        "incident": "▲",
        "profile": "⇄",
    },
    eighths=" ▁▂▃▄▅▆▇█",
    bar=" ▏▎▍▌▋▊▉█",
    line="─",
    band="▄",
    now="┃",
    mark="╎",
    hatch="╱",
    cursor_line="┊",
    expected="◇",
    done="⚑",
    braille=True,
    cursor="▸",
    ellipsis="…",
    dot="·",
)
ASCII = Glyphs(
    name="ascii",
    levels={"safe": "o", "warning": "!", "danger": "X", "underused": "_", "unknown": "-"},
    marks={
        "start": "+",
        "restart": "R",
        "checkpoint": "*",
        "bad_checkpoint": "?",
        "crash": "X",
        "hang": "H",
        "danger": "!",
        "incident": "!",
        "profile": "P",
    },
    eighths=" .:-=+*#@",
    bar="    =====",
    line="-",
    band="=",
    now="|",
    mark="|",
    hatch="/",
    cursor_line=":",
    expected="o",
    done="F",
    braille=False,
    cursor=">",
    ellipsis="~",
    dot=".",
)
LEVEL_WORDS: dict[str, str] = {
    "safe": "",
    "warning": "warning",
    "danger": "danger",
    "underused": "low",
    "unknown": "",
}
"""The word beside glyph and colour; safe and unknown need none."""


def glyphs_for(env: Mapping[str, str] | None = None) -> Glyphs:
    """ASCII on the Linux console (its font lacks braille and blocks), on dumb terminals and without UTF-8."""
    env = os.environ if env is None else env
    if env.get("TERM", "") in {"linux", "dumb", "vt100", "vt220", "ansi"}:
        return ASCII
    return UNICODE if draws_letters(env) else ASCII


def draws_letters(env: Mapping[str, str] | None = None) -> bool:
    """Whether the terminal takes UTF-8, as far as is known."""
    env = os.environ if env is None else env
    charset = env.get("LC_ALL") or env.get("LC_CTYPE") or env.get("LANG") or ""
    # No locale at all (containers, cron) says nothing about the terminal; most can draw UTF-8.
    return charset in {"", "C", "POSIX"} or "utf" in charset.lower()
