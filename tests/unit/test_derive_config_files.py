"""TOML and YAML edits: the traps that are known to catch people."""

import tomllib

import pytest

from trainwatch.core.act.config.edits import DeriveError, Edit, edit_text, locate, read_yaml


def test_toml_new_key_beside_dotted_keys_leaves_the_neighbours() -> None:
    """tomlkit moves ``z`` into ``[a.new]`` here (python-poetry/tomlkit pull request 588)."""
    text = "a.b = 1\nz = 2\n"
    after = tomllib.loads(edit_text("toml", text, [Edit(("a", "new", "x"), 1)], "f"))
    assert after == {"a": {"b": 1, "new": {"x": 1}}, "z": 2}


def test_values_that_toml_cannot_express_are_refused() -> None:
    with pytest.raises(DeriveError, match="cannot be written in TOML"):
        edit_text("toml", "", [Edit(("x",), [None])], "f.toml")


def test_yaml_changes_nothing_but_the_value() -> None:
    text = "# top\na:\n    - x   # odd indent\n    -   y\nb: {c: 1,   d: 'q'}  # flow\n"
    text += "lr: 1e-4   # a word to PyYAML\non: yes\n"
    after = edit_text("yaml", text, [Edit(("lr",), 5e-5), Edit(("b", "c"), 2)], "f")
    assert read_yaml(after, "f") == read_yaml(text, "f") | {"lr": 5e-5, "b": {"c": 2, "d": "q"}}
    assert all(part in after for part in ("# top\n", "# odd indent", "d: 'q'", "5.0e-05 ", "# a word", "on: yes\n"))


def test_yaml_anchor_of_another_key_is_not_changed_along() -> None:
    text = "base: &b\n  lr: 1.0\n  n: 2\nrun: *b\nother: &o 5\nsame: *o\n"
    after = edit_text("yaml", text, [Edit(("same",), 6)], "f")
    assert read_yaml(after, "f")["other"] == 5
    assert read_yaml(after, "f")["same"] == 6
    with pytest.raises(DeriveError, match="without touching other values"):
        edit_text("yaml", text, [Edit(("run", "lr"), 2.0)], "f")


def test_key_is_located_in_its_section() -> None:
    tree = {"top": 1, "training": {"batch_size": 4, "opt": {"lr": 1}}, "data": {"batch_size": 8}, "vae": None}
    assert locate(tree, "top", "f", sections_ignored=False) == (("top",),)
    assert locate(tree, "lr", "f", sections_ignored=False) == (("training", "opt", "lr"),)
    assert locate(tree, "data.batch_size", "f", sections_ignored=False) == (("data", "batch_size"),)
    assert locate(tree, "new", "f", sections_ignored=False) == (("new",),)
    assert locate(tree, "vae.use_slicing", "f", sections_ignored=False) == (("vae", "use_slicing"),)
    assert len(locate(tree, "batch_size", "f", sections_ignored=True)) == 2
    with pytest.raises(DeriveError, match=r"training\.batch_size, data\.batch_size"):
        locate(tree, "batch_size", "f", sections_ignored=False)
    with pytest.raises(DeriveError, match="top is not a section"):
        locate(tree, "top.x", "f", sections_ignored=False)
    with pytest.raises(DeriveError, match="is a section and not a value"):
        locate(tree, "training", "f", sections_ignored=False)
