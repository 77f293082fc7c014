"""The source uses no private names of third-party packages, except for those listed here with a reason."""

import ast
import gc
import importlib
import inspect
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.source_trees import OURS, REPOSITORY, trees
from tests.tiers import SECOND_TIER

ALLOWED = {
    # Textual has no public way to write an escape sequence between two of its own; see TerminalTitle.
    "_driver": "textual",
}
STANDARD_LIBRARY = {
    "_exit", "_asdict", "_replace", "_fields", "_thread",  # documented
    "_option_string_actions", "_actions", "_SubParsersAction", "_choices_actions",  # argparse, for the list of all words
}  # fmt: skip
NAMED_BY_STRING = {"getattr", "setattr", "hasattr", "delattr"}


def private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__") and name != "_"


def on_itself(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id in {"self", "cls"}


class Source(NamedTuple):
    """``defined``: names that a piece of source defines or assigns, attributes included; ``attributes``: all that it
    reads or writes; ``private``: (line, name, whether it is an attribute of self or cls) of private names that it uses.
    """

    defined: set[str]
    attributes: set[str]
    private: list[tuple[int, str, bool]]

    def foreign(self, anywhere: set[str]) -> Iterator[tuple[int, str]]:
        """(line, name) of private names that our own source does not define. ``anywhere``: names that it does."""
        for line, name, of_itself in self.private:
            if name not in (anywhere if of_itself else self.defined):
                yield line, name


@cache
def sources() -> dict[str, Source]:
    gc.disable()  # else it looks through the growing trees again and again
    try:
        return {str(path.relative_to(REPOSITORY)): read(tree) for path, tree in trees(*OURS, "configs")}
    finally:
        gc.enable()


def read(tree: ast.AST) -> Source:
    """All in one walk: it costs more than to parse the file."""
    source = Source(set(), set(), [])
    for node in ast.walk(tree):
        match node:
            case ast.Attribute():
                source.attributes.add(node.attr)
                if isinstance(node.ctx, ast.Store) and on_itself(node):
                    source.defined.add(node.attr)
                if private(node.attr):
                    source.private.append((node.lineno, node.attr, on_itself(node)))
            case ast.Name(ctx=ast.Store()):
                source.defined.add(node.id)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                source.defined.add(node.name)
            case ast.arg():
                source.defined.add(node.arg)
            case ast.Import() | ast.ImportFrom() | ast.Call():
                source.private.extend((node.lineno, name, False) for name in named(node) if private(name))
    return source


def named(node: ast.Import | ast.ImportFrom | ast.Call) -> list[str]:
    """The names that are imported from elsewhere, or given as a text to ``getattr`` and its like."""
    match node:
        case ast.Import():
            return [part for alias in node.names for part in alias.name.split(".")]
        case ast.ImportFrom(level=0):
            return [*(node.module or "").split("."), *(alias.name for alias in node.names)]
        case ast.Call(func=ast.Name(id=name), args=[_, ast.Constant(value=str(text)), *_]) if name in NAMED_BY_STRING:
            return [text]
    return []


def third_party(cls: type) -> bool:
    root = cls.__module__.partition(".")[0]
    return root not in {"trainwatch", "builtins"} and root not in sys.stdlib_module_names


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


def written_in(cls: type) -> set[str]:
    """Names that the source of a class defines or assigns; empty if it has none in Python."""
    try:
        path = inspect.getsourcefile(cls)
    except TypeError:
        return set()
    node = None if path is None else classes_of(path).get(cls.__qualname__)
    return set() if node is None else read(node).defined


@cache
def names_of(cls: type) -> set[str]:
    """Private names of a class: its own, and those that its methods assign to self."""
    return {name for name in (*vars(cls), *written_in(cls)) if private(name)}


@SECOND_TIER
def test_no_private_name_of_a_third_party_package_is_used() -> None:
    anywhere = set().union(*(source.defined for source in sources().values()))
    found = [
        f"{path}:{line}: {name}"
        for path, source in sources().items()
        for line, name in source.foreign(anywhere)
        if name not in ALLOWED and name not in STANDARD_LIBRARY
    ]
    assert found == []


def test_every_allowed_name_is_still_used() -> None:
    used = set().union(*(source.attributes for source in sources().values()))
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
    found = read(ast.parse(source))
    assert list(found.foreign(found.defined))


@SECOND_TIER
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
            clashes[cls.__qualname__] |= {name for name in theirs & written_in(cls) if private(name)}
    assert {name: found for name, found in clashes.items() if found} == {}
