"""Which scenario fails without each number of hang detection: ``python bench/constants.py [--all] [NAME…]``.

Each constant of docs/hang-constants.md is made three times as large and a third as large, and the scenarios of its row
are run. Prints a table; exit status 1 if some constant may have any value. ``--all`` runs every scenario instead and
prints those that fail, which is how a row is found. ``--write`` rewrites the table; with a name that does not exist it
only takes over values and reasons from the source.
"""

import argparse
import contextlib
import io
import os
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests import builders
from tests.scenarios import constants, healthy, sick
from tests.scenarios.cases import SIZES, fault, replayed
from tests.scenarios.constants import Constant
from trainwatch.core.model.settings import Hang, Settings

UNIT = constants.ROOT / "tests" / "unit"
FACTORS = (3.0, 1 / 3)
UP, DOWN = "×3", "÷3"
ENOUGH = 3
"""Failing scenarios that are looked for with ``--all``."""


def changed(value: float, factor: float) -> float:
    """Another value of the same type."""
    return round(value * factor) if isinstance(value, int) else value * factor


def mutate(constant: Constant, factor: float) -> None:
    """Change a constant in this process."""
    new = changed(constant.value, factor)
    if constant.module == constants.SETTINGS:
        hang = partial(Hang, **{constant.name: new})
        builders.Settings = partial(Settings, hang=hang())  # type: ignore[misc, assignment]
        healthy.Hang = sick.Hang = hang  # type: ignore[misc, assignment]
    else:
        for module in constants.MODULES if constant.name in constants.SHARED.split() else (constant.module,):
            if hasattr(constants.load(module), constant.name):
                setattr(constants.load(module), constant.name, new)


def failing(scenarios: Iterable[str], enough: int) -> list[str]:
    """Those of the scenarios that fail now; units as pytest runs them."""
    units = []
    failed = []
    for name in scenarios:
        if "::" in name:
            units.append(name)
            continue
        build = healthy.HEALTHY.get(name) or sick.SICK[name]
        if any(fault(case, replayed(case)) is not None for case in (build(*size) for size in SIZES)):
            failed.append(name)
        if len(failed) >= enough:
            return failed
    return failed + (_failing_units(units) if units else [])


class _Failures:
    """A plugin of pytest that remembers what failed."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.names.append(report.nodeid.rpartition("/")[2].partition("[")[0])


def _failing_units(names: list[str]) -> list[str]:
    seen = _Failures()
    paths = [str(UNIT / name.removesuffix("::")) for name in names]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        pytest.main([f"--maxfail={ENOUGH}", *paths], plugins=[seen])
    return list(dict.fromkeys(seen.names))


def tried(constant: Constant, factor: float, scenarios: tuple[str, ...], enough: int) -> list[str]:
    """Names of the scenarios that fail with the changed constant, found in a process of its own."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        try:
            mutate(constant, factor)
            found = failing(scenarios, enough)
        except Exception as error:
            found = [f"{type(error).__name__}: {error}"]
        os.write(writer, "\n".join(found).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answer:
        text = answer.read()
    os.waitpid(pid, 0)
    return text.splitlines()


def every() -> tuple[str, ...]:
    """All scenarios, and the unit tests of the judge."""
    units = sorted(path.name for path in UNIT.glob("test_judge_*.py"))
    return (*healthy.HEALTHY, *sick.SICK, *(f"{name}::" for name in units))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    known = {name: row.scenarios for name, row in constants.rows().items()}
    chosen = [c for c in constants.defined() if not options.names or {c.name, c.id} & set(options.names)]
    jobs = [(constant, factor) for constant in chosen for factor in FACTORS]

    def run(job: tuple[Constant, float]) -> list[str]:
        constant, factor = job
        scenarios = every() if options.all else known.get(constant.id, ())
        return tried(constant, factor, scenarios, ENOUGH)

    outcome: dict[str, dict[str, list[str]]] = {}
    with ThreadPoolExecutor(2) as pool:
        for (constant, factor), failed in zip(jobs, pool.map(run, jobs), strict=True):
            mark = UP if factor > 1 else DOWN
            outcome.setdefault(constant.id, {})[mark] = failed
            print(f"{constant.id:40} {constant.value:<8g} {mark}  {', '.join(failed) or '-'}", flush=True)
    free = [name for name, failed in outcome.items() if not any(failed.values())]
    print(f"{len(chosen)} constants, {len(free)} without a scenario that fails: {', '.join(free) or 'none'}")
    if options.write:
        write(outcome)
    return 1 if free else 0


def write(outcome: dict[str, dict[str, list[str]]]) -> None:
    """Write the table anew. What was not tried now keeps its scenarios."""
    before = constants.rows()
    text = constants.TABLE.read_text(encoding="utf-8")
    head = text[: text.index("| constant")]
    lines = ["| constant | value | scenario that fails |", "|---|---|---|"]
    for constant in constants.defined():
        tried = outcome.get(constant.id, {})
        names = dict.fromkeys(name for failed in tried.values() for name in failed)
        cell = ", ".join(f"`{name}`{_marks(tried, name)}" for name in names)
        if not cell and constant.id in before:
            cell = before[constant.id].cell
        lines.append(f"| `{constant.id}` | {constant.value:g} | {cell} |")
    constants.TABLE.write_text(head + "\n".join(lines) + "\n", encoding="utf-8")


def _marks(tried: dict[str, list[str]], name: str) -> str:
    return "".join(f" {mark}" for mark, failed in tried.items() if name in failed)


if __name__ == "__main__":
    sys.exit(main())
