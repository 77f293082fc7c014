"""The terminal: whether there is one, its size, and exit when it is closed."""

import contextlib
import os
import select
import signal
import sys
import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rich.style import Style
from textual.color import Color
from textual.theme import Theme

LOOK_S = 1.0
GONE = 129
"""Exit code of a process ended by a hang-up (128 + SIGHUP)."""


def in_browser(env: Mapping[str, str]) -> bool:
    """True if `trainwatch serve` runs this screen: it is drawn into pipes, for a page."""
    return env.get("TEXTUAL_DRIVER", "").endswith(":WebDriver")


def mouse_supported(env: Mapping[str, str]) -> bool:
    """False inside GNU screen: with mouse reporting on, it holds back a lone Escape until the next key."""
    return not env.get("STY")


def can_show_screen() -> bool:
    """True in a browser, and on a terminal that can address its cells. It is drawn on stderr.

    Also stdout must be a terminal: who pipes it (``trainwatch | cat``) wants text; so does who puts it in the
    background (``trainwatch run … &``), where reading keys would stop it.
    """
    if in_browser(os.environ):
        return True
    if os.environ.get("TERM", "") in {"", "dumb"} or _foreground() not in {0, os.getpgrp()}:
        return False
    with contextlib.suppress(ValueError, AttributeError):  # closed or absent streams
        return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.__stdout__, sys.__stderr__))
    return False


def use_terminal_size() -> None:
    """Ignore COLUMNS and LINES: a shell may have exported them long ago, and they would override the real size."""
    for name in ("COLUMNS", "LINES"):
        os.environ.pop(name, None)


def exit_with_terminal() -> None:
    """Exit as soon as the terminal is closed.

    SIGHUP gets its default action again, which a parent may have set to ignore, and a thread waits for the hang-up of
    stdin: Textual's reader does not notice it and would use 100 % CPU.
    """
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    threading.Thread(target=_wait_for_hangup, args=(os.getppid(),), name="terminal-watch", daemon=True).start()


def _wait_for_hangup(parent: int) -> None:
    poll = select.poll()
    poll.register(0, 0)
    while True:
        if any(event & (select.POLLHUP | select.POLLERR | select.POLLNVAL) for _, event in poll.poll(LOOK_S * 1000)):
            os._exit(GONE)
        if os.getppid() != parent and _foreground() != os.getpgrp():
            os._exit(GONE)


def _foreground() -> int:
    """The process group that has the terminal of stdin; 0 if that is outside of this container, or there is none."""
    try:
        return os.tcgetpgrp(0)
    except OSError:
        return 0


# The colour themes, dark and light, and both for terminals of 16 colours.

BLACK, RED, BLUE, MAGENTA, CYAN, WHITE = "#000000", "#aa0000", "#0000aa", "#aa00aa", "#00aaaa", "#aaaaaa"
GREY, ROSE, GREEN, YELLOW = "#555555", "#ff5555", "#55ff55", "#ffff55"
PALE, PINK, AQUA, BRIGHT = "#5555ff", "#ff55ff", "#55ffff", "#ffffff"
"""Of the 16 colours as Rich has them: a colour that equals one of them becomes it, any other one that is near."""
PALETTE: dict[str, tuple[str, str, str, str]] = {
    "primary": ("#6ea8d8", "#2a6fa8", PALE, BLUE),
    "secondary": ("#b49be0", "#6b4fb0", PINK, MAGENTA),
    "accent": ("#7cc4d4", "#0f7285", AQUA, BLUE),
    "success": ("#7fc48a", "#2c7a3c", GREEN, BLUE),
    "warning": ("#e6b450", "#946200", YELLOW, MAGENTA),
    "error": ("#f0716a", "#b8302a", ROSE, RED),
    "foreground": ("#c6ccd4", "#2a3038", WHITE, BLACK),
    "background": ("#12161b", "#fafbfc", BLACK, BRIGHT),
    "surface": ("#171c22", "#f1f3f5", BLACK, BRIGHT),
    "panel": ("#1c222a", "#e8ebef", BLACK, BRIGHT),
    "line": ("#39434e", "#c3cad2", GREY, WHITE),
    "title": ("#93a1b0", "#55616e", WHITE, BLACK),
    "quiet": ("#7c8894", "#66727e", WHITE, GREY),
    "bright": ("#f2f5f8", "#0b0f14", BRIGHT, BLACK),
    "spark": ("#4b7787", "#3f8096", CYAN, CYAN),
    "low": ("#616f7c", "#87939f", GREY, GREY),
    "silence": ("#594b2d", "#d8c8a8", BLACK, BRIGHT),
    "trough": ("#252d36", "#dfe4e9", BLUE, WHITE),
    "error-lit": ("#f0716a", "#b8302a", BRIGHT, RED),
}
"""Colour → its value on dark and on light ground, and both on terminals of 16 colours.

Dark, of 16: not the colour 8 for text: many terminals show it as nearly black; not red on blue: on xterm it is hardly
seen. Light, of 16: not green, yellow or cyan for text: on white they are hardly seen. Levels have signs of their own.
"""
ROLES: dict[str, str] = {
    "line": "#5a5a5a", "title": "#a0a0a0", "quiet": "#8c8c8c", "bright": "#ffffff", "spark": "#6f9fb0",
    "low": "#777777", "silence": "#594b2d", "trough": "#333333", "error-lit": "#ffffff",
}  # fmt: skip
"""Values of our colour variables for Textual's own themes."""


def _theme(name: str, column: int) -> Theme:
    found = {role: colours[column] for role, colours in PALETTE.items()}
    own: dict[str, Any] = {role: colour for role, colour in found.items() if role not in ROLES}
    return Theme(name=name, dark=column % 2 == 0, variables={role: found[role] for role in ROLES}, **own)


DARK, LIGHT = _theme("trainwatch", 0), _theme("trainwatch-light", 1)
SIXTEEN_DARK, SIXTEEN_LIGHT = _theme(DARK.name, 2), _theme(LIGHT.name, 3)


def own_themes(color_system: str | None, *, colourless: bool = False) -> tuple[Theme, Theme]:
    """Dark and light. ``color_system`` is Rich's: "standard" has 16 colours. ``colourless``: alarms are no grey."""
    dark, light = (SIXTEEN_DARK, SIXTEEN_LIGHT) if color_system == "standard" else (DARK, LIGHT)
    return (_loud(dark), _loud(light)) if colourless else (dark, light)


def _loud(theme: Theme) -> Theme:
    """Grey for red would be quieter than the text around it."""
    bright = theme.variables["bright"]
    return replace(theme, warning=bright, error=bright, variables=theme.variables | {"error-lit": bright})


# The styles of spans, from the colours of the theme.


GROUND = "background"
COLOURS: dict[str, str] = {
    "text": "foreground", "strong": "bright", "label": "quiet", "faint": "low", "accent": "accent",
    "silence": "warning",
    "safe": "success", "warning": "warning", "danger": "error", "underused": "quiet", "unknown": "quiet",
    "spark-safe": "spark", "spark-warning": "warning", "spark-danger": "error", "spark-underused": "low",
    "spark-unknown": "quiet", "loss": "accent", "bar": "accent", "match": "background",
    "key": "accent", "cursor": "bright", "danger-lit": "error-lit", "mark": "error", "curve": "accent",
    "band-load": "quiet", "band-train": "spark", "band-check": "secondary", "band-save": "accent",
    "band-none": "line",
}  # fmt: skip
"""Style name → the colour of its text, a variable of the theme."""
GROUNDS: dict[str, str] = {"silence": "silence", "match": "warning", "cursor": "trough"}
"""Style name → its background, if it has one of its own."""
BOLD = frozenset({"strong", "danger", "key", "danger-lit"})


def look(style: str, variables: Mapping[str, str]) -> Style:
    """The style of spans with this name; ``variables``: those of the theme."""
    ground = Color.parse(variables[GROUNDS.get(style, GROUND)])
    colour = Color.parse(variables[COLOURS[style]])
    return Style(color=(ground + colour).rich_color, bgcolor=ground.rich_color, bold=style in BOLD or None)
