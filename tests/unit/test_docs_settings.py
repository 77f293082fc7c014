"""docs/settings.md agrees with core/model/settings.py, and the program reads each setting."""

import ast
import importlib.resources
import runpy
from collections.abc import Iterator
from pathlib import Path

import pytest

from trainwatch.core.model.preset import Preset
from trainwatch.core.model.settings import Settings

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_of_settings_is_current() -> None:
    written = runpy.run_path(str(DOCS / "make_settings.py"))["page"]()
    assert (DOCS / "settings.md").read_text("utf-8") == written, "run: python docs/make_settings.py"


def test_every_key_has_its_row() -> None:
    text = (DOCS / "settings.md").read_text("utf-8")
    for section in Settings.__struct_fields__:
        assert f"\n## [{section}]\n" in text
        for key in getattr(Settings(), section).__struct_fields__:
            assert f"\n| `{key}` | `" in text.partition(f"\n## [{section}]\n")[2].partition("\n## ")[0]


def attributes_read(folder: Path) -> Iterator[str]:
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                yield node.attr


@pytest.fixture(scope="module")
def read_somewhere() -> set[str]:
    package = Path(str(importlib.resources.files("trainwatch")))
    return {name for folder in (package / "cli", package / "core", package / "tui") for name in attributes_read(folder)}


def test_every_setting_is_read_somewhere(read_somewhere: set[str]) -> None:
    sections = {type(getattr(Settings(), section)) for section in Settings.__struct_fields__}
    assert not {key for section in sections for key in section.__struct_fields__} - read_somewhere


def test_every_preset_key_is_read_somewhere(read_somewhere: set[str]) -> None:
    assert not set(Preset.__struct_fields__) - read_somewhere
