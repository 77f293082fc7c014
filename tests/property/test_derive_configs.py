"""Whatever a config looks like: an edit changes what was asked for and nothing else, or is refused."""

import io
import math
import re
import tomllib
from typing import Any

import tomlkit
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from tests.tiers import examples
from trainwatch.core.act.config.edits import (
    REMOVED,
    DeriveError,
    Edit,
    edit_text,
    edited,
    read_toml,
    read_yaml,
    same,
    yaml_text,
)
from trainwatch.core.act.config.flags import find_option, set_option

names = st.one_of(
    st.sampled_from(
        ["lr", "batch_size", "training", "data", "vae", "a.b", "on", "1e5", "kebab-case", "with space", "é"]
    ),
    st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=6),
)
words = st.one_of(
    st.sampled_from(
        [
            "",
            "a: b",
            "# no",
            "- x",
            *[
                "yes",
                "1e-4",
                "null",
                "010",
                "0x1f",
                "1_0",
                "~",
                "{x}",
                "C:\\new",
                '"',
                "'",
                "12:30",
                "*a",
                "&b",
                "!t",
                "%",
            ],
        ]
    ),
    st.text(st.characters(codec="utf-8"), max_size=12),
)
numbers = st.one_of(st.integers(-(2**62), 2**62), st.floats(allow_nan=True, allow_infinity=True))
scalars = st.one_of(st.booleans(), numbers, words)
values = st.one_of(scalars, st.lists(scalars, max_size=3))
trees = st.recursive(
    st.dictionaries(names, values, max_size=4),
    lambda inner: st.dictionaries(names, st.one_of(values, inner), max_size=4),
    max_leaves=12,
)
rows_of_a_file = st.lists(
    st.tuples(st.sampled_from("abcdefgh"), st.sampled_from(["1", "2.5", "true", "x", "1.0e-4", "'q'"])),
    min_size=1,
    unique_by=lambda row: row[0],
)
paths = st.lists(names, min_size=1, max_size=3).map(tuple)


def some_path(tree: dict[str, Any], data: st.DataObject) -> tuple[str, ...]:
    """A place for an edit: a value that stands there, or a new one in a section that may exist."""
    path: tuple[str, ...] = ()
    node: Any = tree
    while isinstance(node, dict) and node and data.draw(st.integers(0, 4)):
        path = (*path, data.draw(st.sampled_from(sorted(node))))
        node = node[path[-1]]
    if not path or isinstance(node, dict):
        path += data.draw(paths)
    return path


def fits(tree: dict[str, Any], path: tuple[str, ...]) -> bool:
    node: Any = tree
    for name in path[:-1]:
        node = node.get(name)
        if node is None:
            return True
        if not isinstance(node, dict):
            return False
    return not isinstance(node.get(path[-1]), dict)


@given(tree=trees, data=st.data(), value=values)
@settings(max_examples=examples(150), deadline=None)
def test_toml_edit_changes_only_the_given_keys(tree: dict[str, Any], data: st.DataObject, value: Any) -> None:
    text = tomlkit.dumps(tree)
    before = tomllib.loads(text)
    path = some_path(before, data)
    if not fits(before, path):
        return
    edit = Edit(path, value)
    try:
        after = edit_text("toml", text, [edit], "f")
    except DeriveError:
        return
    assert same(read_toml(after, "f"), edited(before, edit))


@given(tree=trees, data=st.data(), value=values, flow=st.booleans(), width=st.integers(20, 100))
@settings(max_examples=examples(150), deadline=None)
def test_yaml_edit_changes_only_the_given_keys(
    tree: dict[str, Any], data: st.DataObject, value: Any, flow: bool, width: int
) -> None:
    writer = YAML(typ="rt", pure=True)
    writer.default_flow_style = flow
    writer.width = width
    out = io.StringIO()
    writer.dump(tree, out)
    text = out.getvalue()
    try:
        before = read_yaml(text, "f")
    except DeriveError:  # not every string that hypothesis finds survives ruamel's own writer
        return
    path = some_path(tree, data)
    if not fits(before, path):
        return
    edit = Edit(path, value)
    try:
        after = edit_text("yaml", text, [edit], "f")
    except DeriveError:
        return
    assert same(read_yaml(after, "f"), edited(before, edit))


@given(rows=rows_of_a_file, pick=st.data(), value=st.one_of(st.integers(), st.booleans(), st.floats(allow_nan=False)))
@settings(max_examples=examples(60), deadline=None)
def test_edits_of_ordinary_files_always_succeed_and_keep_all_other_bytes(
    rows: list[tuple[str, str]], pick: st.DataObject, value: Any
) -> None:
    key = pick.draw(st.sampled_from([row[0] for row in rows]))
    old = dict(rows)[key]

    lines = ["# a comment", "training:", *(f"  {name}: {text} # {name}" for name, text in rows), "other: [1, 2]"]
    text = "\n".join(lines) + "\n"
    after = edit_text("yaml", text, [Edit(("training", key), value)], "f")
    assert re.sub(" +#", " #", after) == text.replace(f"  {key}: {old} ", f"  {key}: {yaml_text(value)} ")

    body = (
        "\n".join(["# a comment", "[training]", *(f"{n}   = {'true' if t == 'x' else t} # {n}" for n, t in rows)])
        + "\n"
    )
    edited_body = edit_text("toml", body, [Edit(("training", key), value)], "f")
    unchanged = [line for line in body.splitlines() if not line.startswith(f"{key} ")]
    assert [line for line in edited_body.splitlines() if not line.startswith(f"{key} ")] == unchanged
    assert f"# {key}" in edited_body


@given(value=values)
@settings(max_examples=examples(200), deadline=None)
def test_written_yaml_values_are_read_as_they_are(value: Any) -> None:
    try:
        assert same(read_yaml(f"k: {yaml_text(value)}\n", "f"), {"k": value})
    except DeriveError:  # a character that YAML cannot hold at all
        assert isinstance(value, str | list)


@given(
    others=st.lists(st.sampled_from(["--x", "--y=1", "--z", "5", "-v", "pos"]), max_size=5),
    value=st.one_of(st.integers(0, 9), st.floats(0, 1), st.text("ab", min_size=1), st.booleans()),
)
@settings(max_examples=examples(100), deadline=None)
def test_setting_an_option_twice_gives_it_once(others: list[str], value: Any) -> None:
    argv = ("t.py", "--lr", "1", *others)
    first = set_option(argv, "lr", value)
    again = set_option(first.argv, "lr", value)
    assert again.argv == first.argv
    assert sum(part.lstrip("-").startswith("lr") for part in first.argv) <= 1
    assert find_option(set_option(first.argv, "lr", REMOVED).argv, "lr") is None
    kept = {"--x", "--y=1", "-v", "--z"}
    assert [part for part in first.argv if part in kept] == [part for part in others if part in kept]


def test_nan_equals_nan_in_config_comparison() -> None:
    assert same(math.nan, math.nan)
