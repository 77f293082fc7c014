"""The visible part of the x axis: zoomed about a place, moved, or all of it."""

import math

import msgspec

CLOSEST = 8.0
"""Fewest units of the axis (seconds, steps) that are shown."""
LEAST_GRAIN = 10.0
"""The axis of a young run grows by so many seconds or steps."""


class Span(msgspec.Struct, frozen=True):
    """From ``since`` to ``until`` on the x axis."""

    since: float
    until: float

    @property
    def length(self) -> float:
        return self.until - self.since


def zoomed(shown: Span, whole: Span, factor: float, about: float | None = None) -> Span | None:
    """``factor`` below 1: closer. ``about`` keeps its place on the screen; None = the middle. None = the whole axis."""
    length = max(CLOSEST, shown.length * factor)
    if length >= whole.length * 0.999:
        return None
    about = min(max((shown.since + shown.until) / 2 if about is None else about, shown.since), shown.until)
    share = (about - shown.since) / max(shown.length, 1e-9)
    return _inside(about - share * length, length, whole)


def moved(shown: Span, whole: Span, share: float) -> Span:
    """By a share of what is shown, to the right if positive, up to the end of the axis."""
    return _inside(shown.since + share * shown.length, shown.length, whole)


def at_end(shown: Span, whole: Span) -> bool:
    """Whether the newest values are visible: then the span follows them."""
    return shown.until >= whole.until - max(0.02 * shown.length, 1e-9)


def showing(shown: Span, whole: Span, x: float) -> Span:
    """The span moved as little as needed to show ``x``."""
    if shown.since <= x <= shown.until:
        return shown
    since = x - shown.length * 0.05 if x < shown.since else x - shown.length * 0.95
    return _inside(since, shown.length, whole)


def grown(end: float, length: float) -> float:
    """Rounded up by a small share of the ``length`` that is visible: an axis that ends now moves rarely.

    Each move draws every chart anew, 40 kB on a large terminal.
    """
    grain = max(2.0 ** math.ceil(math.log2(max(length, 1.0))) / 128, LEAST_GRAIN)
    return math.ceil(end / grain) * grain


def _inside(since: float, length: float, whole: Span) -> Span:
    since = max(whole.since, min(since, whole.until - length))
    return Span(since, since + length)
