"""What a script names: the modules it uses, the texts that it has for its settings, and all texts written out."""

import ast
from collections.abc import Iterator

import msgspec

from ..model.launch.recognition import Imported
from .project_modules import Module
from .syntax import constant

LONGEST = 300
"""Characters of a text that may be a path or a name."""


class Default(msgspec.Struct, frozen=True):
    """A value that the script has for a setting. ``name`` as it is written; ``place``: ``train.py:3``."""

    name: str
    value: str
    place: str


def imported_by(module: Module) -> Iterator[Imported]:
    """The modules that it imports, the names of them, and the attributes of those that it uses."""
    shown = module.path.name
    aliases: dict[str, str] = {}
    for node in module.nodes:
        if isinstance(node, ast.Import):
            for name in node.names:
                first = name.name.partition(".")[0]
                aliases[name.asname or first] = name.name if name.asname else first
                yield Imported(name.name, f"{shown}:{node.lineno}")
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for name in node.names:
                aliases[name.asname or name.name] = f"{node.module}.{name.name}"
                yield Imported(f"{node.module}.{name.name}", f"{shown}:{node.lineno}")
    for node in module.nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in aliases:
            yield Imported(f"{aliases[node.value.id]}.{node.attr}", f"{shown}:{node.lineno}")


def defaults_in(module: Module) -> Iterator[Default]:
    """Texts: defaults of its options, then names at its top level and fields of its classes."""
    shown = module.path.name
    for call in module.calls:
        default = next((k.value for k in call.keywords if k.arg == "default"), None)
        names = [n for arg in call.args if (n := written_out(arg)) is not None and n.startswith("--")]
        value = None if default is None else written_out(default)
        if names and value is not None:
            yield Default(names[0].lstrip("-"), value, f"{shown}:{call.lineno}")
    body = module.tree.body
    for node in (*body, *(n for each in body if isinstance(each, ast.ClassDef) for n in each.body)):
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        value = (
            written_out(node.value) if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None else None
        )
        for target in targets:
            if isinstance(target, ast.Name) and value is not None:
                yield Default(target.id, value, f"{shown}:{node.lineno}")


class Number(msgspec.Struct, frozen=True):
    """A whole number above 0 that the script has for a setting; as ``Default``."""

    name: str
    value: int
    place: str


def numbers_in(module: Module) -> Iterator[Number]:
    """Those of names that are set at one place only (``EPOCHS = 50``)."""
    found: dict[str, list[tuple[ast.expr | None, int]]] = {}
    for node in module.nodes:
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Name):
                    found.setdefault(target.id, []).append((node.value, node.lineno))
    for name, places in found.items():
        value, line = places[0]
        number = constant(value)
        if len(places) == 1 and isinstance(number, int) and not isinstance(number, bool) and number > 0:
            yield Number(name, number, f"{module.path.name}:{line}")


def texts_in_module(module: Module) -> Iterator[tuple[str, str]]:
    """All texts that are written out, joined ones as a whole, with their places; ``{`` ends one with a placeholder."""
    for node in module.nodes:
        if isinstance(node, ast.JoinedStr):
            first = node.values[0] if node.values else None
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield f"{first.value}{{", f"{module.shown}:{node.lineno}"
        elif isinstance(node, ast.Constant | ast.BinOp | ast.Call):
            text = written_out(node)
            if text is not None and len(text) <= LONGEST:
                yield text, f"{module.shown}:{node.lineno}"


def written_out(node: ast.AST) -> str | None:
    """A text that is written out: ``"out"``, ``Path("out")``, ``field(default="out")``, ``os.path.join("a", "b")``."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        left, right = written_out(node.left), written_out(node.right)
        return None if left is None or right is None else f"{left}/{right}"
    if not isinstance(node, ast.Call):
        return None
    called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if called in {"field", "Field", "Option", "Argument"}:
        default = next((k.value for k in node.keywords if k.arg == "default"), None)
        default = default if default is not None else node.args[0] if node.args else None
        return None if default is None else written_out(default)
    if called in {"Path", "join", "abspath", "expanduser", "resolve"} and node.args:
        parts = [written_out(arg) for arg in node.args]
        return None if None in parts else "/".join(str(part) for part in parts)
    return None
