"""The source uses no private names of third-party packages.

Of other objects ruff tells them (SLF001; B009 if they are given as texts), and which exceptions are still needed. Here:
imports, and what a class has from its third-party base, where one name would replace the other without a word.
"""

import ast
import importlib
import inspect
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from textual.widget import Widget

from tests.source_trees import OURS, REPOSITORY, trees
from tests.tiers import SECOND_TIER


def private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__") and name != "_"


def is_foreign(package: str) -> bool:
    root = package.partition(".")[0]
    return root not in {"trainwatch", "builtins"} and root not in sys.stdlib_module_names


def imported(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, name) of private names that are imported from third-party packages."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                packages = [alias.name for alias in names]
            case ast.ImportFrom(level=0, module=module, names=names):
                packages = [f"{module}.{alias.name}" for alias in names]
            case _:
                continue
        yield from ((node.lineno, p) for p in packages if is_foreign(p) and any(map(private, p.split("."))))


def test_no_private_name_of_a_third_party_package_is_imported() -> None:
    files = trees(*OURS, "configs", having=r"(?m)^\s*(from|import)\b.*[ .]_[a-z]|^\s+_[a-z]\w*( as \w+)?,$")
    assert [f"{path}:{line}: {name}" for path, tree in files for line, name in imported(tree)] == []


@pytest.mark.parametrize(
    "source", ["from textual._compositor import Compositor", "from textual import _xterm_parser", "import rich._wrap"]
)
def test_an_imported_private_name_is_found(source: str) -> None:
    assert list(imported(ast.parse(source)))


@cache
def classes_of(path: str) -> dict[str, ast.ClassDef]:
    """The classes of a file by their qualified names."""
    found: dict[str, ast.ClassDef] = {}

    def enter(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            name = f"{prefix}{getattr(child, 'name', '')}"
            if isinstance(child, ast.ClassDef):
                found[name] = child
                enter(child, f"{name}.")
            elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                enter(child, f"{name}.<locals>.")
            else:
                enter(child, prefix)

    enter(ast.parse(Path(path).read_text(encoding="utf-8")), "")
    return found


def names_in(node: ast.AST) -> set[str]:
    """Private names that a class defines, and those of self and cls that it reads or writes."""
    found: set[str] = set()
    for each in ast.walk(node):
        match each:
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name) | ast.Name(ctx=ast.Store(), id=name):
                found.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case _:
                pass
    return {name for name in found if private(name)}


def written_in(cls: type) -> set[str]:
    """As ``names_in``; empty if the class has no source in Python."""
    try:
        path = inspect.getsourcefile(cls)
    except TypeError:
        return set()
    node = None if path is None else classes_of(path).get(cls.__qualname__)
    return set() if node is None else names_in(node)


@cache
def names_of(cls: type) -> set[str]:
    """Private names of a class: its own, and those that its methods assign to self."""
    return {name for name in vars(cls) if private(name)} | written_in(cls)


def shared(cls: type) -> set[str]:
    """Private names of a class of ours that one of its third-party bases has, too."""
    theirs = (names_of(base) for base in cls.__mro__ if is_foreign(base.__module__))
    return set().union(*theirs) & written_in(cls)


def test_a_private_name_of_the_base_is_found() -> None:
    class Mine(Widget):
        def draw(self) -> object:
            return self._styles_cache

    assert shared(Mine) == {"_styles_cache"}


@SECOND_TIER
def test_no_class_has_a_private_name_of_its_third_party_base() -> None:
    clashes: dict[str, set[str]] = {}
    for path in sorted((REPOSITORY / "tui").rglob("*.py")):
        module = importlib.import_module(".".join(("trainwatch", *path.relative_to(REPOSITORY).with_suffix("").parts)))
        classes = (
            each for each in vars(module).values() if isinstance(each, type) and each.__module__ == module.__name__
        )
        clashes |= {cls.__qualname__: found for cls in classes if (found := shared(cls))}
    assert clashes == {}
