"""No line of a log makes a pattern try each way to divide it: twice the line costs at most three times as much."""

import importlib
import pkgutil
import re
import time
from collections.abc import Iterator
from functools import lru_cache
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

import pytest

import trainwatch.core.judge
from tests.tiers import SECOND_TIER
from trainwatch.core.config.shipped import load_failures, load_log_shapes
from trainwatch.core.judge.failure.catalogue import CompiledCatalogue
from trainwatch.core.judge.progress import START, read_progress
from trainwatch.core.judge.text.lines import LINE_CAP, plain
from trainwatch.core.judge.text.shapes import ShapeTable
from trainwatch.core.model.text import LazyPattern

REPEATS = (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT)
MANY = 16
"""A repeat with a lower bound of its own costs at most so many times as much."""
FREE_S = 0.02
"""Seconds of the CPU that one pattern may take for the longest line that is read, whatever its growth."""
SCREENS = ((LINE_CAP // 32, FREE_S / 1200), (LINE_CAP // 8, FREE_S / 70))
"""Shorter lines, and the time below which a pattern that takes the square of a line needs less than FREE_S."""
GENERIC = (
    "a ",
    "0 ",
    "0, ",
    "a=1 ",
    "a: ",
    "[1] ",
    "loss ",
    "step ",
    "epoch ",
    '" ',
    "| ",
    "a_b ",
    "0.5 ",
    "/a ",
    "( ",
)


def every_pattern() -> dict[str, re.Pattern[str]]:
    """The patterns of all modules of the judge and of the shipped tables, found by walking: a new one is covered."""
    modules = [
        importlib.import_module(each.name)
        for each in pkgutil.walk_packages(trainwatch.core.judge.__path__, "trainwatch.core.judge.")
    ]
    roots = [(module.__name__, vars(module)) for module in modules]
    roots.append(("tables", {"catalogue": CompiledCatalogue(load_failures(), ShapeTable(load_log_shapes()))}))
    seen: set[int] = set()
    return {f"{name}: {found.pattern}": found for name, root in roots for found in patterns_in(root, seen)}


def patterns_in(value: Any, seen: set[int]) -> Iterator[re.Pattern[str]]:
    """The patterns in a value, in any depth of containers and of the project's own objects."""
    if id(value) in seen or isinstance(value, str | bytes | int | float | type):
        return
    seen.add(id(value))
    if isinstance(value, LazyPattern):
        yield value.compiled()
    elif isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from patterns_in(inner, seen)
    elif isinstance(value, list | tuple | set | frozenset):
        for inner in value:
            yield from patterns_in(inner, seen)
    elif type(value).__module__.startswith("trainwatch."):
        for field in getattr(value, "__struct_fields__", None) or (*getattr(value, "__dict__", ()),):
            yield from patterns_in(getattr(value, field), seen)


def sample(code: Any, argument: Any) -> str:
    """A short text that this part of a parsed pattern matches; lookarounds match nothing."""
    if code is op.LITERAL:
        return chr(argument)
    if code is op.ANY:
        return "a"
    if code in (op.IN, op.NOT_LITERAL):
        parsed = [(code, argument)]
        return next((char for char in "a0 _-.:,/|=(#A[]{}'\"<>%\t*+e█━" if _fits(parsed, char)), "a")
    if code is op.BRANCH:
        return text_of(argument[1][0])
    if code is op.SUBPATTERN:
        return text_of(argument[3])
    if code is op.ATOMIC_GROUP:
        return text_of(argument)
    return text_of(argument[2]) * argument[0] if code in REPEATS else ""


def _fits(parsed: list[Any], char: str) -> bool:
    code, argument = parsed[0]
    if code is op.NOT_LITERAL:
        return bool(ord(char) != argument)
    hit = negated = False
    for kind, value in argument:
        negated |= kind is op.NEGATE
        hit |= kind is op.LITERAL and ord(char) == value
        hit |= kind is op.RANGE and value[0] <= ord(char) <= value[1]
        if kind is op.CATEGORY:
            word = str(value).removeprefix("CATEGORY_")
            short = {"DIGIT": "d", "SPACE": "s", "WORD": "w"}[word.removeprefix("NOT_")]
            hit |= re.match("\\" + (short.upper() if word.startswith("NOT_") else short), char) is not None
    return bool(hit != negated)


def text_of(parts: Any) -> str:
    return "".join(sample(code, argument) for code, argument in parts)


def repeats(parts: Any, before: str = "") -> Iterator[tuple[str, str]]:
    """For each repeat without a small bound: what stands before it, and one turn of it."""
    for code, argument in parts:
        if code in REPEATS:
            if argument[1] > MANY:
                yield before, text_of(argument[2]) or "a"
            yield from repeats(argument[2], before)
        elif code in (op.SUBPATTERN, op.ATOMIC_GROUP, op.ASSERT, op.ASSERT_NOT):
            inner = argument if code is op.ATOMIC_GROUP else argument[3 if code is op.SUBPATTERN else 1]
            yield from repeats(inner, before)
        elif code is op.BRANCH:
            for branch in argument[1]:
                yield from repeats(branch, before)
        before += sample(code, argument)


def adversaries(pattern: re.Pattern[str]) -> set[tuple[str, str]]:
    """Beginnings of lines, and what is then repeated, for which this pattern may try many ways."""
    lines = {("", each) for each in GENERIC}
    for before, turn in repeats(parser.parse(pattern.pattern, pattern.flags & ~re.UNICODE)):
        lines |= {
            ("", before + turn),
            ("", f"{before}{turn} "),
            ("", f"{before} "),
            (before, turn),
            (before, "a "),
            (before, f"{turn}, "),
        }
    return {(begin, again) for begin, again in lines if again}


def seconds(pattern: re.Pattern[str], line: str) -> float:
    """CPU seconds for all places of one line."""
    begin = time.thread_time()
    for _ in pattern.finditer(line):
        pass
    return time.thread_time() - begin


@lru_cache(maxsize=8192)
def line_of(begin: str, again: str, size: int) -> str:
    """As the readers get it."""
    return plain(begin + again * (size // len(again)) + "!")


def too_slow(pattern: re.Pattern[str]) -> str | None:
    for begin, again in adversaries(pattern):
        if any(seconds(pattern, line_of(begin, again, size)) < enough for size, enough in SCREENS):
            continue
        half, whole = line_of(begin, again, LINE_CAP // 2), line_of(begin, again, LINE_CAP)
        if seconds(pattern, whole) < FREE_S:
            continue
        for times in (2, 12):  # the other core disturbs a few milliseconds: what is suspected is measured again
            took, before = (min(seconds(pattern, line) for _ in range(times)) for line in (whole, half))
            if took < FREE_S or took <= 3 * before:
                break
        else:
            return f"{before * 1000:.0f} -> {took * 1000:.0f} ms for {begin!r} + n x {again!r}"
    return None


@SECOND_TIER
def test_twice_the_line_costs_each_pattern_at_most_three_times_as_much() -> None:
    slow = {name: told for name, pattern in every_pattern().items() if (told := too_slow(pattern)) is not None}
    assert not slow, "\n".join(f"{told}: {name[:160]}" for name, told in slow.items())


@pytest.mark.parametrize("line", ["step{}1", "epoch{}x", "| loss |{}0.5{}|", "steps:  10%|{}| 9/90 [00:09<01:21"])
@pytest.mark.parametrize("blank", [" ", "\t", "\u3000", " \t", ",", "0", "a."])
def test_a_line_with_a_long_run_is_read_at_once(line: str, blank: str) -> None:
    shapes = ShapeTable(load_log_shapes())
    read_progress(START, "step 1 loss 0.5\n", shapes)
    begin = time.thread_time()
    read_progress(START, line.replace("{}", blank * 200_000) + "\n", shapes)
    assert time.thread_time() - begin < 0.2


def test_a_padded_column_is_read_as_a_narrow_one() -> None:
    shapes = ShapeTable(load_log_shapes())
    read = read_progress(START, f"step{' ' * 500}12/90{' ' * 500}loss{' ' * 500}0.5\n", shapes).progress
    assert (read.step, read.total_steps, read.loss) == (12, 90, 0.5)
