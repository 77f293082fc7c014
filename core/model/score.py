"""The score in the output of an evaluation: a JSON object, ``name: number``, or a number alone on the last line."""

import json
import math
import re

import msgspec

NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?(?:nan|inf(?:inity)?)\b"
ALONE = re.compile(rf"(?:{NUMBER})", re.IGNORECASE)
NAMED = re.compile(rf"(?P<name>[A-Za-z_][\w./ @-]{{0,60}}?)\s*[:=]\s*(?P<value>{NUMBER})\s*%?", re.IGNORECASE)
MOST_VALUES = 32
"""Numbers that are kept of one evaluation."""


class Score(msgspec.Struct, frozen=True, kw_only=True):
    """``value`` None = unknown; ``why``: the reason. ``values``: all finite numbers by name."""

    metric: str = ""
    value: float | None = None
    values: dict[str, float] = {}
    why: str = ""


def read_score(output: str, metric: str = "") -> Score:
    """The score that a command printed.

    The last JSON object of the output, ``metric`` names the key (else its only number, or the first); else the last
    line that is ``name: number`` or a number alone.
    """
    found = _last_object(output)
    if found is not None:
        return _of_object(found, metric)
    return _of_lines(output, metric)


def _last_object(output: str) -> dict[str, object] | None:
    """The last JSON object that begins a line and lies in no other."""
    decoder, found, end = json.JSONDecoder(), None, 0
    for match in re.finditer(r"^[ \t]*(\{)", output, re.MULTILINE):
        if match.start(1) >= end:
            try:
                found, end = decoder.raw_decode(output, match.start(1))
            except (ValueError, RecursionError):
                continue
    return found


def _of_object(found: dict[str, object], metric: str) -> Score:
    numbers = {
        name: float(value)
        for name, value in found.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < float("1e300")
    } | {name: value for name, value in found.items() if isinstance(value, float) and not math.isfinite(value)}
    values = {name: value for name, value in list(numbers.items())[:MOST_VALUES] if math.isfinite(value)}
    if metric and metric not in numbers:
        names = ", ".join(list(found)[:5])
        return Score(
            metric=metric, values=values, why=f'its JSON has no number "{metric}" (it has: {names or "nothing"})'
        )
    name = metric or next(iter(numbers), "")
    if not name:
        return Score(why="its JSON has no number")
    return _scored(name, numbers[name], values)


def _of_lines(output: str, metric: str) -> Score:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    if not lines:
        return Score(metric=metric, why="it printed nothing")
    for line in reversed(lines):
        named = NAMED.fullmatch(line)
        if named is not None and (not metric or named["name"].strip().lower() == metric.lower()):
            return _scored(metric or named["name"].strip(), float(named["value"]))
        if ALONE.fullmatch(line):
            return _scored(metric or "score", float(line))
    if metric:
        inside = [m for m in NAMED.finditer(output) if m["name"].split()[-1].lower() == metric.lower()]
        if inside:
            return _scored(metric, float(inside[-1]["value"]))
    last = lines[-1] if len(lines[-1]) <= 80 else f"{lines[-1][:77]}..."
    return Score(metric=metric, why=f'no score in its output (last line: "{last}")')


def _scored(metric: str, value: float, values: dict[str, float] | None = None) -> Score:
    if not math.isfinite(value):
        word = "NaN" if math.isnan(value) else "an infinite number"
        return Score(metric=metric, values=values or {}, why=f"it printed {word} as {metric}")
    return Score(metric=metric, value=value, values=values or {metric: value})
