"""The place of each pane by screen size. Pure: size and contents in, boxes out; no box overlaps another or the edge."""

import msgspec

from ..box import Box

PHONE_COLUMNS = 60
WIDE_COLUMNS = 100
LARGE_COLUMNS = 160
LARGE_ROWS = 44


class Contents(msgspec.Struct, frozen=True):
    """What the layout depends on: rows of the head, numbers of GPUs, meters, incidents and checkpoints."""

    head_rows: int = 2
    gpus: int = 1
    memory_rows: int = 4
    incidents: int = 0
    open_incidents: int = 0
    checkpoints: int = 0
    empty: bool = False
    """Nothing has been read and nothing has happened: readings and timeline are a sentence each."""


def arrange(width: int, height: int, contents: Contents) -> dict[str, Box]:
    """Boxes by pane; a pane that is not in the answer is not shown. ``head`` and ``keys`` are always there."""
    head = min(contents.head_rows, max(1, height - 1))
    boxes: dict[str, Box] = {"head": (0, 0, width, head), "keys": (0, height - 1, width, 1)}
    top, room = head, height - head - 1
    if room < 3:
        return boxes | ({"log": (0, top, width, room)} if room > 0 else {})
    if width < PHONE_COLUMNS:
        boxes |= _phone(width, top, room, contents)
    elif width >= LARGE_COLUMNS and height >= LARGE_ROWS:
        boxes |= _large(width, top, room, contents)
    else:
        boxes |= _stacked(width, top, room, contents)
    return boxes


def _phone(width: int, top: int, room: int, contents: Contents) -> dict[str, Box]:
    """One column. What does not fit is left out, in this order: memory, GPU, timeline."""
    wanted = [
        ("incidents", _incident_rows(contents, 4)),
        ("timeline", 6),
        ("gpu", min(contents.gpus + 3, 8) if contents.gpus > 1 else 6),
        ("memory", 5),
    ]
    kept: list[tuple[str, int]] = []
    left = room - 5
    for name, rows in wanted:
        if rows and rows <= left:
            kept.append((name, rows))
            left -= rows
    order = {"gpu": 0, "memory": 1, "timeline": 2, "incidents": 3}
    return _column(width, top, room, sorted(kept, key=lambda k: order[k[0]]))


def _stacked(width: int, top: int, room: int, contents: Contents) -> dict[str, Box]:
    """GPU beside memory, the timeline below, then incidents (beside checkpoints on a wide screen), the log below."""
    wide = width >= WIDE_COLUMNS
    tall = room >= 30
    meters = 4 if contents.empty else max(contents.memory_rows if tall else 4, _gpu_rows(contents)) + 2
    timeline = _timeline_rows(room, contents, tall=tall)
    incidents = _incident_rows(contents, 8 if tall else 5)
    if tall and wide:
        incidents = max(incidents, min(8, contents.checkpoints + 2), 3)
    log_least = 5 if tall else 4
    spare = room - log_least
    boxes: dict[str, Box] = {}
    y = top
    for name, rows in (("meters", meters), ("timeline", timeline), ("incidents", incidents)):
        fitting = min(rows, spare)
        if fitting < 3:
            continue
        if name == "meters":
            left = width * 52 // 100 if contents.gpus <= 1 else width * 56 // 100
            boxes["gpu"] = (0, y, left, fitting)
            below = fitting - contents.memory_rows - 2
            if contents.incidents and below >= 3 and not wide:
                # Many GPUs on a small screen: the incidents go below memory.
                boxes["memory"] = (left, y, width - left, fitting - below)
                boxes["incidents"] = (left, y + fitting - below, width - left, below)
            else:
                boxes["memory"] = (left, y, width - left, fitting)
        elif name == "incidents" and "incidents" in boxes:
            continue
        elif name == "incidents" and wide and (tall or contents.checkpoints):
            left = width * 60 // 100
            boxes["incidents"] = (0, y, left, fitting)
            boxes["checkpoints"] = (left, y, width - left, fitting)
        else:
            boxes[name] = (0, y, width, fitting)
        y += fitting
        spare -= fitting
    boxes["log"] = (0, y, width, top + room - y)
    return boxes


def _large(width: int, top: int, room: int, contents: Contents) -> dict[str, Box]:
    """Three bands: readings; the timeline over the whole width; the log beside incidents and checkpoints."""
    left = width * 2 // 3
    meters = 4 if contents.empty else max(contents.memory_rows, _gpu_rows(contents)) + 2
    timeline = 3 if contents.empty else min(18, max(12, room - meters - 18))
    y = top
    boxes: dict[str, Box] = {"gpu": (0, y, left, meters), "memory": (left, y, width - left, meters)}
    y += meters
    boxes["timeline"] = (0, y, width, timeline)
    y += timeline
    rest = top + room - y
    boxes["log"] = (0, y, left, rest)
    wanted = _incident_rows(contents, 8) + max(0, contents.incidents - 1) if contents.incidents else 3
    checkpoints = min(max(4, contents.checkpoints + 2), max(4, rest // 2 - 1, rest - wanted))
    boxes["incidents"] = (left, y, width - left, rest - checkpoints)
    boxes["checkpoints"] = (left, y + rest - checkpoints, width - left, checkpoints)
    return boxes


def _timeline_rows(room: int, contents: Contents, *, tall: bool) -> int:
    """Both curves with their ticks if there is room; an open incident needs it more."""
    if contents.empty:
        return 3
    if tall:
        return 12 if room >= 34 else 10
    if contents.open_incidents:
        return 5
    return 6 if contents.incidents or room < 20 else 8


def _gpu_rows(contents: Contents) -> int:
    """Four readings of a single GPU, or a heading and a row each."""
    return 4 if contents.gpus <= 1 else min(contents.gpus, 16) + 1


def _incident_rows(contents: Contents, when_open: int) -> int:
    if not contents.incidents:
        return 0
    return when_open if contents.open_incidents else min(when_open, 2 + min(contents.incidents, 2))


def _column(width: int, top: int, room: int, panes: list[tuple[str, int]]) -> dict[str, Box]:
    boxes: dict[str, Box] = {}
    y = top
    for name, rows in panes:
        boxes[name] = (0, y, width, rows)
        y += rows
    if top + room - y >= 3:
        boxes["log"] = (0, y, width, top + room - y)
    return boxes
