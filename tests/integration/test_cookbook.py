"""The cookbook is what the gallery, its results and a dry run of each command say today."""

import re
import runpy
from pathlib import Path

import pytest

from tests.tiers import SECOND_TIER
from trainwatch.core.config.shipped import load_presets

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "cookbook.md").read_text(encoding="utf-8")


def test_every_framework_of_the_results_has_a_section() -> None:
    first = (DOCS / "frameworks.md").read_text(encoding="utf-8").partition("\n| --- ")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| (.+?) \| (\w\S*) \|", first, re.MULTILINE)
    assert len(rows) > 20
    sections = dict(re.findall(r"^## (.+)\n\n\S+ (\S+?)\.(?: |\n)", PAGE, re.MULTILINE))
    assert sections == dict(rows)


def test_every_preset_that_is_named_is_there() -> None:
    assert set(re.findall(r"preset `([\w-]+)`", PAGE)) <= set(load_presets())


@SECOND_TIER
@pytest.mark.timeout(300)
def test_the_page_is_what_its_program_writes() -> None:
    assert runpy.run_path(str(DOCS / "make_pages.py"))["cookbook"]() == PAGE
