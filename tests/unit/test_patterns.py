"""Patterns that compile at their first use."""

import re

import pytest

from trainwatch.core.model.text import LazyPattern


@pytest.mark.parametrize("method", ["search", "match", "fullmatch"])
def test_each_method_answers_as_that_of_the_compiled_pattern_at_the_first_use_and_later(method: str) -> None:
    lazy, compiled = LazyPattern(r"(\d+)"), re.compile(r"(\d+)")
    for text in ("12", "a 12", "12 a"):
        found, expected = getattr(lazy, method)(text), getattr(compiled, method)(text)
        assert (found is None) == (expected is None)
        assert found is None or found.span() == expected.span()


def test_a_pattern_that_is_no_regular_expression_fails_when_it_is_used_and_names_why() -> None:
    with pytest.raises(re.error):
        LazyPattern("(").search("text")
