"""docs/settings.md says what core/model/settings.py says."""

import runpy
from pathlib import Path

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
