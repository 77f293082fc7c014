"""Which test modules come through doors: what people and other programs see, and what stays when the inside is rebuilt.

``pytest -m door`` runs them: verbs and their JSON, the judge with the builders, scenarios and goldens, corpora,
documented commands, requirements, real processes and terminals. The imports of a module decide, not its name: it has to
come through a door and may use values besides, and as soon as it imports anything else of the program, it is none.
"""

import re
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parent
PROGRAM = TESTS.parent / "src"

DOORS = (
    "tests.builders",
    "tests.fakes.e2e_world",
    "tests.goldens",
    "tests.scenarios",
    "trainwatch.cli",
    "trainwatch.cli.parser",
    "trainwatch.core.checkpoints.inspection",
    "trainwatch.core.checkpoints.listing",
    "trainwatch.core.checkpoints.manage.comparison",
    "trainwatch.core.checkpoints.manage.copies",
    "trainwatch.core.checkpoints.manage.pruning",
    "trainwatch.core.judge.step",
    "trainwatch.core.replay",
)
"""Each with all below it if it is of the tests. The helpers of the tests may know the inside: they are what changes."""
OUTSIDE = frozenset({"integration", "requirements", "scenarios"})
"""Folders whose tests start programs: these need no door of the list."""
VALUES = (
    "trainwatch",
    "trainwatch.core.processes",
    "trainwatch.core.app.errors",
    "trainwatch.core.config.shipped",
    "trainwatch.core.judge.knowledge",
    "trainwatch.core.model",
    "trainwatch.core.store.journal",
    "trainwatch.core.store.lock",
    "trainwatch.core.store.history_reader",
    "trainwatch.core.store.history_writer",
    "trainwatch.core.store.latest",
    "trainwatch.core.store.run_directory",
    "trainwatch.core.store.trace",
    "trainwatch.tui.app",
    "trainwatch.tui.keys",
)
"""What a test may use besides: values, shipped data, the files of a past run, the names of keys."""

_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import[ \t]+(\([^)]*\)|[^\n]*)|import[ \t]+([\w.]+))", re.MULTILINE
)
_NAMED = re.compile(r"""["'](trainwatch\.(?:cli|core|tui)\.[\w.]+)["']""")
_MEMORY = re.compile(r"\.state\.[a-z]")
"""A look into what the judge remembers, in a module that has a judge."""


@cache
def is_door(path: Path) -> bool:
    """Whether the tests of this module come through doors."""
    return of_text(path.read_text(encoding="utf-8"), path.relative_to(TESTS).parts[0])


def of_text(text: str, folder: str) -> bool:
    """As ``is_door``. ``folder``: the one of ``tests`` that the module is in."""
    used = imports(text)
    ours = {name for name in used if name.split(".")[0] == "trainwatch"}
    if not all(_is_open(name) for name in ours):
        return False
    if _MEMORY.search(text) and used & {"tests.builders", "trainwatch.core.judge.step", "trainwatch.core.replay"}:
        return False
    stored = any(name.startswith(("trainwatch.core.act", "trainwatch.core.store")) for name in ours)
    return any(_is_door(name) for name in used) or (folder in OUTSIDE and not stored)


def imports(text: str) -> set[str]:
    """Return the modules that a module imports anywhere, and those of ours that it names in a string."""
    found = set(_NAMED.findall(text))
    for package, names, module in _IMPORT.findall(text):
        if module:
            found.add(module)
            continue
        for name in re.findall(r"\w+", re.sub(r"#[^\n]*|\bas[ \t]+\w+", "", names)):
            below = f"{package}.{name}"
            found.add(below if _is_module(below) else package)
    return found


@cache
def _is_module(name: str) -> bool:
    path = (PROGRAM if name.startswith("trainwatch") else TESTS.parent).joinpath(*name.split("."))
    return path.with_suffix(".py").exists() or (path / "__init__.py").exists()


def _is_door(name: str) -> bool:
    return name in DOORS or (name.startswith("tests.") and name.startswith(tuple(f"{door}." for door in DOORS)))


def _is_open(name: str) -> bool:
    return name in DOORS or name in VALUES or name.startswith("trainwatch.core.model.")
