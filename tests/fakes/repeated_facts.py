"""Finds facts that one card, or one head of the screen, tells twice: sentences, and numbers with their units."""

import re
from collections.abc import Iterator, Sequence

from tests.fakes.e2e_world import Done

_CLAUSE = re.compile(r"\s*(?:[;·→()`]|[.:,] |\.$)\s*")
_NUMBER = re.compile(r"(?<![\d.,-])(\d[\d,.]*\d|\d) ?(°C|W|[kMGT]i?B|bytes|restarts?|attempts?)(?!\w|/)")
LEAST_WORDS = 4
"""Shorter clauses are names: of a checkpoint, of a state."""


def facts(text: str) -> Iterator[str]:
    """The clauses of a text of at least four words, and its sizes, temperatures, powers and counts, in one form."""
    for clause in _CLAUSE.split(text):
        words = re.findall(r"[\w.%°-]+", clause.lower())
        if sum(word.isalpha() for word in words) >= LEAST_WORDS:
            yield " ".join(words)
    yield from (f"{number.rstrip('.,')} {unit}" for number, unit in _NUMBER.findall(text))


def repeated(texts: Sequence[str]) -> list[str]:
    """The facts that more than one of the texts tells, or one of them twice."""
    seen: list[str] = []
    found: list[str] = []
    for text in texts:
        for fact in facts(text):
            if any(f" {fact} " in f" {other} " for other in seen):
                found.append(fact)
            seen.append(fact)
    return found


def lines_of(done: Done) -> list[str]:
    """What a verb printed."""
    assert done.code == 0, done.err
    return done.out.splitlines()
