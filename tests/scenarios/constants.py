"""The numbers that a verdict of a hang depends on, as the source and docs/hang-constants.md have them.

A row names at least one scenario that fails when the number is three times as large or a third as large.
``bench/constants.py`` tries that for each of them.
"""

import ast
import importlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from tests.scenarios.healthy import HEALTHY
from tests.scenarios.sick import SICK
from trainwatch.core.model.settings import Hang

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "docs" / "hang-constants.md"
JUDGE = "trainwatch.core.judge"
MODULES = (
    "hang.deadlines",
    "hang.rules",
    "hang.liveness",
    "hang.pauses",
    "handlers.hang_check",
    "slow",
)
SETTINGS = "settings.hang"
SHARED = "AGAIN_SHARE HALF_AGAIN HALF_MINUTE_S LAG_S LASTS_S MINUTE_S SURE_TIMES TWICE WHILE_S"
"""Those of the numbers that all rules of the judge share which decide on a hang; the scenarios of all their uses."""


@dataclass(frozen=True)
class Constant:
    """``module``: below core/judge, or ``settings.hang``. ``why``: its docstring in the source."""

    module: str
    name: str
    value: float
    why: str

    @property
    def id(self) -> str:
        """As the table names it."""
        return f"{self.module}.{self.name}"


def load(module: str) -> ModuleType:
    """The module of a constant."""
    return importlib.import_module(f"{JUDGE}.{module}")


def defined() -> list[Constant]:
    """All numeric constants of the modules, and the defaults of ``[hang]``, in the order of the source."""
    found = [constant for module in MODULES for constant in _of_module(module)]
    found += [constant for constant in _of_module("scales") if constant.name in SHARED.split()]
    tree = ast.parse((ROOT / "core" / "model" / "settings.py").read_text(encoding="utf-8"))
    body = next(node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Hang")
    defaults = Hang()
    for name, why in _documented(body):
        if isinstance(value := getattr(defaults, name), int | float):
            found.append(Constant(SETTINGS, name, value, why))
    return found


def _of_module(module: str) -> Iterator[Constant]:
    loaded = load(module)
    assert loaded.__file__ is not None
    tree = ast.parse(Path(loaded.__file__).read_text(encoding="utf-8"))
    for name, why in _documented(tree.body):
        if name.isupper() and isinstance(value := getattr(loaded, name), int | float):
            yield Constant(module, name, value, why)


def _documented(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    """Names that are assigned, each with the docstring below it."""
    for node, after in zip(body, [*body[1:], ast.Pass()], strict=True):
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if isinstance(target, ast.Name):
            text = after.value if isinstance(after, ast.Expr) else None
            why = text.value if isinstance(text, ast.Constant) and isinstance(text.value, str) else ""
            yield target.id, " ".join(why.split())


@dataclass(frozen=True)
class Row:
    """One row of the table. ``cell``: the last one as it stands; ``scenarios``: its names without marks."""

    value: str
    cell: str
    scenarios: tuple[str, ...]


def rows() -> dict[str, Row]:
    """The table by constant."""
    found = {}
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        if line.startswith("| `"):
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            found[cells[0].strip("`")] = Row(cells[1], cells[-1], tuple(re.findall(r"`([^`]+)`", cells[-1])))
    return found


def exists(scenario: str) -> bool:
    """``NAME`` of a healthy or sick scenario, or ``FILE.py::TEST`` below tests/unit."""
    file, _, test = scenario.partition("::")
    if not test:
        return scenario in HEALTHY or scenario in SICK
    path = ROOT / "tests" / "unit" / file
    return path.exists() and f"def {test}(" in path.read_text(encoding="utf-8")
