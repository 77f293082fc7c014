"""The keys of the log screen."""

from ..keys import Key

LOG_KEYS: tuple[Key, ...] = (
    Key(key="space", shown="space", action="follow", label="follow", help="hold the log, or follow its end"),
    Key(key="up", shown="↑ ↓", action="move(-1)", label="line", footer=False,
        help="line by line (PgUp PgDn: screens; Home End: first line, follow the end; mouse wheel)"),
    Key(key="slash", shown="/", action="search", label="search",
        help="search upwards (a regular expression; without capitals, case does not matter)"),
    Key(key="n", shown="n N", action="match(True)", label="match",
        help="next older match, next newer match"),
    Key(key="f", shown="f", action="filter", label="filter", help="show only lines that match"),
    Key(key="L", shown="L", action="level", label="level",
        help="show only warnings and errors, then only errors (with the places of a traceback), then all lines"),
    Key(key="r", shown="r", action="rank", label="rank", help="show only the lines of one rank"),
    Key(key="left_square_bracket", shown="[ ]", action="chord(-1)", label="jump",
        help="to the previous or next error, incident or attempt: then press e, i or a ([[ and ]] repeat)"),
    Key(key="tab", shown="tab", action="file(1)", label="file", help="next file (shift+tab: the one before)"),
    Key(key="o", shown="o", action="unfold", label="unfold",
        help="show all states of a progress bar that was overwritten (≡), or hide them"),
    Key(key="W", shown="W", action="wrap", label="wrap", help="wrap long lines, or cut them (then ← → move sideways)"),
    Key(key="v", shown="v", action="mark", label="mark", help="begin or end marking lines (or drag with the mouse)"),
    Key(key="y", shown="y", action="copy", label="copy", help="copy the marked lines, or the one under the cursor"),
    Key(key="s", shown="s", action="save", label="save", help="save the marked lines to a new file"),
    Key(key="escape", shown="Esc", action="back", label="back", footer=False,
        help="stop a search; then clear mark, filter and search; then back to the dashboard"),
    Key(key="1", shown="1", action="app.place('dashboard')", label="dashboard", help="back to the dashboard"),
    Key(key="question_mark", shown="?", action="help", label="help", help="this list", always=True),
    Key(key="q", shown="q", action="app.leave", label="leave",
        help="leave the screen; training and supervisor continue", always=True),
)  # fmt: skip
ALSO: tuple[tuple[str, str], ...] = (
    ("down", "move(1)"),
    ("pageup", "page(-1)"),
    ("pagedown", "page(1)"),
    ("home", "top"),
    ("g", "top"),
    ("end", "end"),
    ("G", "end"),
    ("N", "match(False)"),
    ("right_square_bracket", "chord(1)"),
    ("ampersand", "filter"),
    ("shift+tab", "file(-1)"),
    ("enter", "unfold"),
    ("left", "sideways(-1)"),
    ("right", "sideways(1)"),
    ("e", "jump('error')"),
    ("i", "jump('incident')"),
    ("a", "jump('attempt')"),
)
CHORD: tuple[Key, ...] = (
    Key(key="e", shown="e", action="jump('error')", label="error", help="", always=True),
    Key(key="i", shown="i", action="jump('incident')", label="incident", help="", always=True),
    Key(key="a", shown="a", action="jump('attempt')", label="start of an attempt", help="", always=True),
)
"""What the footer offers after ``[`` or ``]``."""
