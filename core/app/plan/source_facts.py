"""What the trainer's own script uses and sets, read without running or importing it."""

import ast
import os
import warnings
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

import msgspec

from ...model.launch.recognition import Imported, SourceFacts
from ...source.launch_target import Target, find_target
from ...source.options.all_options import options_of
from ...source.options.option import Option
from ...source.project_modules import read_project

MOST_BYTES = 1 << 20
"""A larger file is no script."""


class Default(msgspec.Struct, frozen=True):
    """A value that the script has for a setting. ``name`` as it is written; ``place``: ``train.py:3``."""

    name: str
    value: str
    place: str


def source_facts(command: Sequence[str], cwd: str) -> SourceFacts:
    """The imports of the script that the command runs, and where it lies. Empty if it cannot be read.

    Of an installed program nothing is told by its imports: they are those of its framework.
    """
    target = find_target(command, Path(cwd), os.environ)
    if isinstance(target, str) or target.package:
        return SourceFacts(folders=(cwd,))
    tree = _tree(target.file)
    imported = () if tree is None else tuple(_imported(tree, target.file.name))
    return SourceFacts(imported=imported, folders=tuple(dict.fromkeys((str(target.file.parent), cwd))))


def defaults_of(command: Sequence[str], cwd: str) -> Iterator[Default]:
    """Texts that the script has for its settings: names at its top level and fields, then options of its project.

    A further Python file in the command is a config that is run after the script's own values (nanoGPT).
    """
    target = find_target(command, Path(cwd), os.environ)
    if isinstance(target, str) or target.package:
        return
    configs = [Path(cwd) / word for word in target.args if word.endswith(".py") and not word.startswith("-")]
    for script in (*reversed(configs), target.file):
        tree = _tree(script)
        if tree is not None:
            yield from _defaults(tree, script.name)
    for option in _options(target, Path(cwd)):
        if isinstance(option.default, str):
            yield Default(option.name.lstrip("-"), option.default, f"{option.file}:{option.line}")


def _options(target: Target, cwd: Path) -> list[Option]:
    try:
        return options_of(read_project(target, cwd))
    except (OSError, ValueError, RecursionError):
        return []


def _tree(script: Path) -> ast.Module | None:
    try:
        status = script.stat()
    except OSError:
        return None
    return _parsed(script, status.st_mtime_ns) if status.st_size <= MOST_BYTES else None


@lru_cache(maxsize=8)
def _parsed(script: Path, _modified: int) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(script.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _imported(tree: ast.Module, shown: str) -> Iterator[Imported]:
    aliases: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                first = name.name.partition(".")[0]
                aliases[name.asname or first] = name.name if name.asname else first
                yield Imported(name.name, f"{shown}:{node.lineno}")
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for name in node.names:
                aliases[name.asname or name.name] = f"{node.module}.{name.name}"
                yield Imported(f"{node.module}.{name.name}", f"{shown}:{node.lineno}")
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in aliases:
            yield Imported(f"{aliases[node.value.id]}.{node.attr}", f"{shown}:{node.lineno}")


def _defaults(tree: ast.Module, shown: str) -> Iterator[Default]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            default = next((k.value for k in node.keywords if k.arg == "default"), None)
            names = [n for arg in node.args if (n := _text(arg)) is not None and n.startswith("--")]
            value = None if default is None else _text(default)
            if names and value is not None:
                yield Default(names[0].lstrip("-"), value, f"{shown}:{node.lineno}")
    for node in (*tree.body, *(n for each in tree.body if isinstance(each, ast.ClassDef) for n in each.body)):
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        value = _text(node.value) if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None else None
        for target in targets:
            if isinstance(target, ast.Name) and value is not None:
                yield Default(target.id, value, f"{shown}:{node.lineno}")


def _text(node: ast.expr) -> str | None:
    """A text that is written out: ``"out"``, ``Path("out")``, ``field(default="out")``, ``os.path.join("a", "b")``."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        left, right = _text(node.left), _text(node.right)
        return None if left is None or right is None else f"{left}/{right}"
    if not isinstance(node, ast.Call):
        return None
    called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if called in {"field", "Field", "Option", "Argument"}:
        default = next((k.value for k in node.keywords if k.arg == "default"), None)
        default = default if default is not None else node.args[0] if node.args else None
        return None if default is None else _text(default)
    if called in {"Path", "join", "abspath", "expanduser", "resolve"} and node.args:
        parts = [_text(arg) for arg in node.args]
        return None if None in parts else "/".join(str(part) for part in parts)
    return None
