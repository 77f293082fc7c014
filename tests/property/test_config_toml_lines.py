"""The line finder against the real parser: every key that tomllib finds has its line, and it is the right one."""

import tomllib
from typing import Any

import tomlkit
from hypothesis import given
from hypothesis import strategies as st

from trainwatch.core.config.document import KeyPath, key_lines

keys = st.text(alphabet="ab-_.é \"'\\#=[]{},1\t", min_size=1, max_size=6)
scalars = st.one_of(
    st.integers(-(2**40), 2**40),
    st.booleans(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(alphabet="ab#[]{}=,\"'\\\n \t", max_size=12),
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3), max_leaves=8
)
documents = st.dictionaries(keys, values, max_size=5)


def paths(data: Any, path: KeyPath = ()) -> list[KeyPath]:
    found: list[KeyPath] = [path] if path else []
    if isinstance(data, dict):
        for key, value in data.items():
            found += paths(value, (*path, key))
    elif isinstance(data, list):
        for index, value in enumerate(data):
            found += paths(value, (*path, index))
    return found


@given(documents)
def test_exactly_the_keys_of_a_toml_file_have_line_numbers(data: dict[str, Any]) -> None:
    text = tomlkit.dumps(data)
    lines = key_lines(text)
    assert set(lines) == set(paths(tomllib.loads(text)))
    assert all(1 <= line <= text.count("\n") + 1 for line in lines.values())


def test_line_numbers_of_toml_keys_are_correct() -> None:
    text = r'''# a comment with [brackets] and key = 1
title = """
many = 1
lines""" # more
a.b."c.d" = [ # first
  1, # one
  { x = 2, y.z = [3] },
]

[[list]]
k = 1
[[list]]
k = 2
[list.below]
deep = 'it\"='
[run] # here
env = { A = "x", B = 'y' }
when = 1979-05-27T07:32:00Z
'''
    tomllib.loads(text)
    lines = key_lines(text)
    assert lines["title",] == 2
    assert lines["a", "b", "c.d"] == 5
    assert lines["a", "b", "c.d", 0] == 6
    assert lines["a", "b", "c.d", 1, "y", "z", 0] == 7
    assert lines["list", 0, "k"] == 11
    assert lines["list", 1, "k"] == 13
    assert lines["list", 1, "below", "deep"] == 15
    assert lines["run", "env", "B"] == 17
    assert lines["run", "when"] == 18
