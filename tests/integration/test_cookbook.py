"""The cookbook is what the gallery, its results and a dry run of each command say today."""

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

from tests.tiers import SECOND_TIER
from trainwatch.core.config.shipped import load_presets

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "cookbook.md").read_text(encoding="utf-8")
HEAD, *_SECTIONS = PAGE.rstrip("\n").split("\n\n## ")
SECTIONS = {title: text for title, _, text in (section.partition("\n") for section in _SECTIONS)}


def test_every_framework_of_the_results_has_a_section() -> None:
    first = (DOCS / "frameworks.md").read_text(encoding="utf-8").partition("\n| --- ")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| (.+?) \| (\w\S*) \|", first, re.MULTILINE)
    assert len(rows) > 20
    sections = dict(re.findall(r"^## (.+)\n\n\S+ (\S+?)\.(?: |\n)", PAGE, re.MULTILINE))
    assert sections == dict(rows)


def test_every_preset_that_is_named_is_there() -> None:
    assert set(re.findall(r"preset `([\w-]+)`", PAGE)) <= set(load_presets())


@pytest.fixture(scope="module")
def made() -> dict[str, Any]:
    """What the program of the page defines."""
    return runpy.run_path(str(DOCS / "make_pages.py"))


def test_the_page_begins_as_its_program_writes(made: dict[str, Any]) -> None:
    assert made["COOKBOOK"].rstrip("\n") == HEAD


@SECOND_TIER
@pytest.mark.parametrize("title", SECTIONS)
def test_the_section_is_what_its_program_writes(made: dict[str, Any], title: str) -> None:
    """With what a dry run of its command says: some seconds each on a busy machine, so each is a case."""
    (row,) = [row for row in made["all_rows"]().values() if row.title == title]
    written = made["_framework"](row, made["_framework_versions"]()[title])
    assert written.strip("\n") == f"## {title}\n{SECTIONS[title]}".strip("\n")
