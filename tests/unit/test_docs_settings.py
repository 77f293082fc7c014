"""docs/settings.md agrees with core/model/settings.py, and the program reads each setting."""

import ast
import re
import runpy
from pathlib import Path

from tests.source_trees import OURS, REPOSITORY, one_of
from trainwatch.core.model.preset import Preset
from trainwatch.core.model.settings import Settings

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_of_settings_is_current() -> None:
    written = runpy.run_path(str(DOCS / "make_pages.py"))["settings_page"]()
    assert (DOCS / "settings.md").read_text("utf-8") == written, "run: python docs/make_pages.py"


def test_every_key_has_its_row() -> None:
    text = (DOCS / "settings.md").read_text("utf-8")
    for section in Settings.__struct_fields__:
        assert f"\n## [{section}]\n" in text
        for key in getattr(Settings(), section).__struct_fields__:
            assert f"\n| `{key}` | `" in text.partition(f"\n## [{section}]\n")[2].partition("\n## ")[0]


def never_read(names: set[str]) -> set[str]:
    """The names that no file reads as an attribute. Only files that may read one of those left are parsed."""
    left = set(names)
    for path in (path for folder in OURS for path in sorted((REPOSITORY / folder).rglob("*.py"))):
        text = path.read_text(encoding="utf-8")
        if left and re.search(rf"\.(?:{one_of(left)})\b", text):
            nodes = ast.walk(ast.parse(text))
            left -= {n.attr for n in nodes if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Load)}
    return left


def test_every_setting_is_read_somewhere() -> None:
    sections = {type(getattr(Settings(), section)) for section in Settings.__struct_fields__}
    keys = {key for section in sections for key in section.__struct_fields__}
    assert never_read(keys) == set()


def test_every_preset_key_is_read_somewhere() -> None:
    assert never_read(set(Preset.__struct_fields__)) == set()
