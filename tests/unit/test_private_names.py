"""The source uses no private names of third-party packages, except for those listed here with a reason."""

import ast
import gc
import importlib
import inspect
import sys
import textwrap
from collections import defaultdict
from collections.abc import Iterator
from functools import cache

import pytest

from tests.source_trees import OURS, REPOSITORY, trees

ALLOWED = {
    # Textual has no public way to write an escape sequence between two of its own; see TerminalTitle.
    "_driver": "textual",
}
STANDARD_LIBRARY = {
    "_exit", "_asdict", "_replace", "_fields",  # documented
    "_option_string_actions", "_actions", "_SubParsersAction", "_choices_actions",  # argparse, for the list of all words
}  # fmt: skip
NAMED_BY_STRING = {"getattr", "setattr", "hasattr", "delattr"}


def private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__") and name != "_"


def on_itself(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id in {"self", "cls"}


@cache
def sources() -> dict[str, ast.Module]:
    gc.disable()  # else it looks through the growing trees again and again
    try:
        return {str(path.relative_to(REPOSITORY)): tree for path, tree in trees(*OURS, "configs")}
    finally:
        gc.enable()


def defined(tree: ast.AST) -> set[str]:
    """Names that a piece of source defines or assigns, attributes included."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and on_itself(node):
            found.add(node.attr)
    return found


def uses(tree: ast.AST, here: set[str], anywhere: set[str]) -> Iterator[tuple[int, str]]:
    """(line, name) of private names that our own source does not define."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and private(node.attr):
            if node.attr not in (anywhere if on_itself(node) else here):
                yield node.lineno, node.attr
        elif isinstance(node, ast.Import):
            for alias in node.names:
                yield from ((node.lineno, part) for part in alias.name.split(".") if private(part))
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            parts = [*(node.module or "").split("."), *(alias.name for alias in node.names)]
            yield from ((node.lineno, part) for part in parts if private(part))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in NAMED_BY_STRING:
            name = node.args[1].value if len(node.args) > 1 and isinstance(node.args[1], ast.Constant) else ""
            if isinstance(name, str) and private(name):
                yield node.lineno, name


def third_party(cls: type) -> bool:
    root = cls.__module__.partition(".")[0]
    return root not in {"trainwatch", "builtins"} and root not in sys.stdlib_module_names


@cache
def names_of(cls: type) -> set[str]:
    """Private names of a class: its own, and those that its methods assign to self."""
    try:
        assigned = defined(ast.parse(textwrap.dedent(inspect.getsource(cls))))
    except (OSError, TypeError, SyntaxError):
        assigned = set()
    return {name for name in (*vars(cls), *assigned) if private(name)}


def test_no_private_name_of_a_third_party_package_is_used() -> None:
    trees = sources()
    by_file = {path: defined(tree) for path, tree in trees.items()}
    anywhere = set().union(*by_file.values())
    found = [
        f"{path}:{line}: {name}"
        for path, tree in trees.items()
        for line, name in uses(tree, by_file[path], anywhere)
        if name not in ALLOWED and name not in STANDARD_LIBRARY
    ]
    assert found == []


def test_every_allowed_name_is_still_used() -> None:
    used = {node.attr for tree in sources().values() for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert ALLOWED.keys() | STANDARD_LIBRARY <= used


@pytest.mark.parametrize(
    "source",
    [
        "driver = app._compositor",
        "class Mine(Widget):\n    def draw(self):\n        return self._styles_cache",
        "from textual._compositor import Compositor",
        "from textual import _xterm_parser",
        "import rich._wrap",
        "size = getattr(app, '_size')",
        "import psutil\npsutil._psplatform.cext",
    ],
)
def test_a_private_name_is_found(source: str) -> None:
    tree = ast.parse(source)
    assert list(uses(tree, defined(tree), defined(tree)))


def test_no_class_redefines_a_private_name_of_its_third_party_base() -> None:
    """A name of ours that Textual uses for something else would replace it without a word."""
    clashes: dict[str, set[str]] = defaultdict(set)
    for path in sorted((REPOSITORY / "tui").rglob("*.py")):
        module = importlib.import_module(".".join(("trainwatch", *path.relative_to(REPOSITORY).with_suffix("").parts)))
        for cls in vars(module).values():
            if not isinstance(cls, type) or cls.__module__ != module.__name__:
                continue
            bases = [base for base in cls.__mro__ if third_party(base)]
            theirs = set().union(*(names_of(base) for base in bases)) if bases else set()
            # What a metaclass or a decorator puts into every class is not written by us.
            written = defined(ast.parse(textwrap.dedent(inspect.getsource(cls))))
            clashes[cls.__qualname__] |= {name for name in theirs & written if private(name)}
    assert {name: found for name, found in clashes.items() if found} == {}
