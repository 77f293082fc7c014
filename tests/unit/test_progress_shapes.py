"""Each row of log_shapes.toml reads its examples; fields are found by their names in lines of no known shape."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.shipped import LOG_SHAPES, SHAPES, progress_of
from trainwatch.core.config.document import ConfigError
from trainwatch.core.config.shipped import read_table
from trainwatch.core.judge import progress as log_progress
from trainwatch.core.judge.text import fields
from trainwatch.core.judge.text.fields import NUMBER
from trainwatch.core.judge.text.shapes import ShapeTable
from trainwatch.core.model.progress import Progress
from trainwatch.core.model.shipped import SHAPE_GROUPS, Example, LineShape, LogShapes

ROWS: dict[str, Any] = {
    **{row.name: row for row in LOG_SHAPES.shapes},
    **{f"label-{row.phase}": row for row in LOG_SHAPES.bar_labels},
    **{f"unit-{row.phase}": row for row in LOG_SHAPES.bar_units},
    **{f"words-{row.phase}": row for row in LOG_SHAPES.line_words},
    "translations": LOG_SHAPES.translations,
}
EXAMPLES = [
    pytest.param(example, id=f"{name}: {example.text.strip()[:30]}")
    for name, row in ROWS.items()
    for example in row.examples
]
QUIET = "x" * 9000 + "\n"
"""Text without news, so long that lines after it are searched with the gates."""


APART = {"text", "run_step", "run_total_steps"}


def fields_of(progress: Progress) -> dict[str, Any]:
    return {name: getattr(progress, name) for name in Example.__struct_fields__ if name not in APART}


def expected(example: Example) -> dict[str, Any]:
    fields = {name: value for name, value in msgspec.structs.asdict(example).items() if name not in APART}
    return {
        name: pytest.approx(value, rel=1e-4) if isinstance(value, float) else value for name, value in fields.items()
    }


@pytest.mark.parametrize("example", EXAMPLES)
def test_progress_of_the_examples_of_each_row(example: Example) -> None:
    assert fields_of(progress_of([example.text])) == expected(example)
    assert fields_of(progress_of([QUIET + example.text])) == expected(example)
    read = progress_of([example.text])
    assert example.run_step in {None, read.run_step}
    assert example.run_total_steps in {None, read.run_total_steps}


@pytest.mark.parametrize("row", LOG_SHAPES.shapes, ids=lambda row: row.name)
def test_progress_every_shape_is_the_one_that_reads_its_examples(row: LineShape) -> None:
    for example in row.examples:
        assert row.name in {first_match(line) for line in example.text.split("\n")}


def first_match(line: str) -> str | None:
    for shape in SHAPES.rows:
        gates = shape.row.gates or fields.GATES
        if any(gate in line for gate in gates) and shape.pattern.search(line):
            return shape.row.name
    return None


def test_progress_shape_rows_are_complete() -> None:
    names = [row.name for row in LOG_SHAPES.shapes]
    assert len(set(names)) == len(names)
    assert all(row.source for row in LOG_SHAPES.shapes)
    for row, compiled in zip(LOG_SHAPES.shapes, SHAPES.rows, strict=True):
        assert "%{" not in compiled.pattern.text, f"{row.name}: unknown abbreviation"
        groups = (*SHAPE_GROUPS, "unit", "elapsed", "label") if row.kind == "bar" else SHAPE_GROUPS
        assert set(compiled.pattern.compiled().groupindex) <= set(groups), row.name
    assert LOG_SHAPES.abbreviations["NUMBER"] == NUMBER


def test_progress_a_shape_is_added_with_one_row(tmp_path: Path) -> None:
    """CONTRIBUTING: a log shape is one row of log_shapes.toml."""
    text = (Path(__file__).parents[2] / "configs" / "log_shapes.toml").read_text(encoding="utf-8")
    row = """
[[shapes]]
name = "mine"
gates = ["tick="]
pattern = '^tick=(?P<step>%{COUNT})/(?P<total_steps>%{COUNT}) cost=(?P<loss>%{NUMBER})'
source = "train.py"
examples = [{text = "tick=1.5k/2k cost=0.5", step = 1500, total_steps = 2000, loss = 0.5}]
"""
    path = tmp_path / "log_shapes.toml"
    path.write_text(text + row, encoding="utf-8")
    shapes = read_table(path, LogShapes)
    example = shapes.shapes[-1].examples[0]
    assert fields_of(log_progress.progress_of([QUIET + example.text], ShapeTable(shapes))) == expected(example)
    path.write_text(text + row.replace("gates", "gate"), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"log_shapes\.toml:\d+: .*`gate`"):
        read_table(path, LogShapes)


def own_shapes(*patterns: str) -> ShapeTable:
    return ShapeTable(LOG_SHAPES, patterns)


@pytest.mark.parametrize("pattern", ["(", r"step \d+", r"(?P<stepp>\d+)"])
def test_progress_own_shape_that_cannot_work_is_refused_in_one_line(pattern: str) -> None:
    with pytest.raises(ValueError, match="progress shape") as refused:
        own_shapes(pattern)
    assert "\n" not in str(refused.value)


def test_progress_several_own_shapes_with_the_same_groups() -> None:
    shapes = own_shapes(
        r"it=(?P<step>\d+) of (?P<total_steps>\d+)", r"(?P<step>\d+)th, round (?P<epoch>\d)/(?P<total_epochs>\d)"
    )
    progress = log_progress.progress_of([f"{QUIET}it=6 of 50\n7th, round 2/9\n"], shapes)
    assert (progress.step, progress.total_steps, progress.epoch, progress.total_epochs) == (7, 50, 2, 9)


def test_progress_own_shape_may_refer_back() -> None:
    shapes = own_shapes(r"(?P<step>\d+) (odd|even) is \2")
    assert log_progress.progress_of(["9 odd is odd\n8 odd is even\n"], shapes).step == 9
