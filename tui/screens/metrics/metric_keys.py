"""The keys of the metrics page."""

from ...keys import Key

METRIC_KEYS: tuple[Key, ...] = (
    Key(key="enter", shown="Enter", action="single", label="one/all", help="the chosen chart alone, and back"),
    Key(key="left", shown="← →", action="left(-1)", label="choose", footer=False,
        help="choose a chart; in a single chart: move the cursor (shift: by ten columns)"),
    Key(key="up", shown="↑ ↓", action="up(-1)", label="chart", footer=False,
        help="choose a chart; in a single chart: the previous or next metric"),
    Key(key="comma", shown=", .", action="cursor(-1)", label="cursor",
        help="move the cursor over all charts (also a click); it shows their values there"),
    Key(key="plus", shown="+ -", action="closer(1)", label="zoom",
        help="a shorter or longer part of the axis, about the cursor (also [ ], and the wheel)"),
    Key(key="less_than_sign", shown="< >", action="pan(-1)", label="move", help="move along the axis"),
    Key(key="0", shown="0", action="whole", label="all of it", help="the whole axis, without a cursor", footer=False),
    Key(key="x", shown="x", action="axis", label="axis", help="the x axis: time or steps"),
    Key(key="s", shown="s", action="smooth", label="smooth",
        help="smoothing: off, 0.6, 0.9, 0.97 (an exponential mean; the values stay behind it)"),
    Key(key="l", shown="l", action="log", label="log y", help="values on a log scale, and back"),
    Key(key="o", shown="o", action="overlay", label="overlay", footer=False,
        help="attempts over each other, each from its own start, or joined to one curve"),
    Key(key="slash", shown="/", action="filter", label="filter", help="show the metrics whose name contains a text"),
    Key(key="e", shown="e", action="export", label="export", help="save the numbers of charts as CSV"),
    Key(key="question_mark", shown="?", action="help", label="help", help="this list", always=True),
    Key(key="escape", shown="Esc", action="back", label="back",
        help="take back the newest of: cursor, zoom, single chart, filter; then the previous screen", always=True),
)  # fmt: skip
ALSO: tuple[tuple[str, str], ...] = (
    ("right", "left(1)"), ("down", "up(1)"), ("shift+left", "cursor(-10)"), ("shift+right", "cursor(10)"),
    ("full_stop", "cursor(1)"), ("minus", "closer(-1)"), ("equals_sign", "closer(1)"),
    ("left_square_bracket", "closer(1)"), ("right_square_bracket", "closer(-1)"), ("greater_than_sign", "pan(1)"),
    ("pageup", "page(-1)"), ("pagedown", "page(1)"), ("home", "to_end(False)"), ("end", "to_end(True)"),
    ("z", "single"),
)  # fmt: skip
