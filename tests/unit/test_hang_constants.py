"""docs/hang-constants.md has a row with a scenario for each number of hang detection, and no other."""

import ast

from tests.scenarios import constants

EXPLAINED = frozenset({0.0, 1.0, 2.0})
"""Numbers that need no name: nothing, one, a half or a majority."""


def test_each_constant_has_a_row_with_its_value() -> None:
    source = {c.id: f"{c.value:g}" for c in constants.defined()}
    assert source == {name: row.value for name, row in constants.rows().items()}


def test_each_constant_says_why() -> None:
    assert [c.id for c in constants.defined() if not c.why] == []


def test_each_row_names_scenarios_that_exist() -> None:
    missing = {
        name: [scenario for scenario in row.scenarios if not constants.exists(scenario)]
        for name, row in constants.rows().items()
    }
    assert {name: wrong for name, wrong in missing.items() if wrong} == {}
    assert [name for name, row in constants.rows().items() if not row.scenarios] == []


def test_hang_detection_has_no_bare_numbers() -> None:
    bare: list[str] = []
    for module in [name for name in constants.MODULES if name.startswith("hang.")]:
        loaded = constants.load(module)
        tree = ast.parse((constants.ROOT / "core" / "judge" / f"{module.replace('.', '/')}.py").read_text("utf-8"))
        bare.extend(
            f"{loaded.__name__}.{function.name}: {node.value}"
            for function in ast.walk(tree)
            if isinstance(function, ast.FunctionDef)
            for node in ast.walk(function)
            if isinstance(node, ast.Constant) and isinstance(node.value, float) and node.value not in EXPLAINED
        )
    assert bare == []
