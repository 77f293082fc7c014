"""Each requirement has a case that runs without a GPU and in the first tier, and its place on the page."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from .ids import REQUIREMENTS
from .shown import PagePartialError, Shown, page, write_page

HERE = Path(__file__).parent


def cases() -> Iterator[tuple[str, str, bool]]:
    """Requirement, test, and whether it runs in the first tier."""
    for path in sorted(HERE.glob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                marks = [mark for mark in node.decorator_list if "requirement" in ast.unparse(mark)]
                first = not any("SECOND_TIER" in ast.unparse(mark) for mark in node.decorator_list)
                for mark in marks:
                    assert isinstance(mark, ast.Call)
                    yield from ((ast.literal_eval(word), f"{path.name}::{node.name}", first) for word in mark.args)


def test_each_requirement_has_a_case_in_the_first_tier() -> None:
    have = {requirement for requirement, _, first in cases() if first}
    assert have - set(REQUIREMENTS) == set(), "a mark with an id that does not exist"
    assert set(REQUIREMENTS) - have == set()


def test_a_case_is_in_the_file_of_its_letter() -> None:
    for requirement, test, _ in cases():
        letter = test.split("::")[0].removeprefix("test_").removesuffix(".py")
        assert letter[0] == requirement[0].lower(), test


def test_the_written_page_shows_something_for_each_requirement() -> None:
    text = (HERE.parents[1] / "docs" / "requirements.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\w+) \| [^|]+ \| `trainwatch [^|]+` \| `[^|]+` \|$", text, re.MULTILINE)
    assert rows == list(REQUIREMENTS)


def test_the_page_has_what_a_case_showed_first_under_its_requirement() -> None:
    shown = [
        Shown(requirement, "case", "trainwatch runs", "none") for requirement in REQUIREMENTS if requirement != "B2"
    ]
    two = [Shown("B2", "case", "trainwatch profiles", printed) for printed in ("balanced | `x`", "stable")]
    row = "| B2 | three profiles | `trainwatch profiles` | `balanced / 'x'` |\n"
    assert row in page([*shown, *two])


def test_a_page_without_one_of_the_requirements_is_not_written(tmp_path: Path) -> None:
    shown = [Shown(requirement, "case", "trainwatch runs", "none") for requirement in REQUIREMENTS]
    file = tmp_path / "page.md"
    write_page(file, shown)
    whole = file.read_text()
    with pytest.raises(PagePartialError, match=f"no case showed {shown[0].requirement}$"):
        write_page(file, shown[1:])
    assert file.read_text() == whole
