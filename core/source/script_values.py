"""What a script names: modules that it uses, texts that it has for its settings, all texts, the paths it saves to."""

import ast
from collections.abc import Iterator, Sequence
from itertools import pairwise

import msgspec

from ..model.launch.recognition import Imported
from .project_modules import Module
from .syntax import constant, dotted, keyword, last, parameters, text_of

LONGEST = 300
"""Characters of a text that may be a path or a name."""
_JOINS = frozenset(
    {"Path", "join", "joinpath", "abspath", "expanduser", "resolve", "absolute", "str", "fspath", "open"}
)
_DEEPEST = 8
"""Names and calls that are followed for one path."""


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


def saves_in(module: Module, words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The paths that its calls of ``save…`` and ``dump`` write to, with their places; ``{`` ends one with another rest.

    They are built from texts, names that are set at one place, and options as the command has them (``words``).
    """
    known = _Known(module, words)
    for call in module.calls:
        name = last(dotted(call.func))
        if name.startswith("save") or name == "dump":
            for value in (*call.args, *(each.value for each in call.keywords)):
                text = known.text(value)
                if text is not None and "/" in text and len(text) <= LONGEST:
                    yield text, f"{module.shown}:{call.lineno}"


class _Known:
    """What the names of a module stand for, where that can be told."""

    def __init__(self, module: Module, words: Sequence[str]) -> None:
        self._words = words
        self._values: dict[str, list[ast.expr | None]] = {}
        for node in module.nodes:
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                self._values.setdefault(node.id, []).append(None)
        for function in module.functions:
            for parameter in parameters(function):
                self._values.setdefault(parameter.arg, []).extend((None, None))
        for node in module.nodes:
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                self._values[node.targets[0].id][0] = node.value
        self._options = [call for call in module.calls if last(dotted(call.func)) == "add_argument"]

    def text(self, node: ast.expr, depth: int = 0) -> str | None:
        """The text that an expression is, as far as it can be told: ``out/ckpt_{``; None if its beginning cannot."""
        if depth > _DEEPEST or text_of(node) is not None:
            return text_of(node)
        parts: list[ast.expr] = []
        between = ""
        match node:
            case ast.Name():
                values = self._values.get(node.id, [])
                return self.text(values[0], depth + 1) if len(values) == 1 and values[0] is not None else None
            case ast.Attribute():
                return self._option(node, depth + 1)
            case ast.FormattedValue(format_spec=None):
                return self.text(node.value, depth + 1)
            case ast.JoinedStr():
                parts = node.values
            case ast.BinOp(op=ast.Add() | ast.Div()):
                parts, between = [node.left, node.right], "/" if isinstance(node.op, ast.Div) else ""
            case ast.Call() if last(dotted(node.func)) in _JOINS:
                name = last(dotted(node.func))
                method = isinstance(node.func, ast.Attribute) and name in {"joinpath", "resolve", "absolute"}
                before = [node.func.value] if method and isinstance(node.func, ast.Attribute) else []
                parts, between = [*before, *(node.args[:1] if name == "open" else node.args)], "/"
            case _:
                return None
        return self._joined(parts, between, depth + 1)

    def _joined(self, parts: Sequence[ast.expr], between: str, depth: int) -> str | None:
        text: str | None = None
        for part in parts:
            more = self.text(part, depth)
            if more is None:
                return None if text is None else f"{text}{between}{{"
            text = more if text is None or (between and more.startswith("/")) else f"{text}{between}{more}"
            if more.endswith("{"):
                break
        return text

    def _option(self, node: ast.Attribute, depth: int) -> str | None:
        """``args.out``, if ``args`` is what a parser made of the command."""
        values = self._values.get(node.value.id, []) if isinstance(node.value, ast.Name) else []
        parsed = values[0] if len(values) == 1 else None
        if not isinstance(parsed, ast.Call) or last(dotted(parsed.func)) != "parse_args" or parsed.args:
            return None
        for call in self._options:
            flags = [flag for arg in call.args if (flag := text_of(arg)) is not None and flag.startswith("-")]
            long = next((flag for flag in flags if flag.startswith("--")), flags[0] if flags else "")
            if (text_of(keyword(call, "dest")) or long.lstrip("-").replace("-", "_")) != node.attr:
                continue
            told = [after for flag, after in pairwise([*self._words, ""]) if flag in flags]
            told += [word.partition("=")[2] for word in self._words if word.partition("=")[0] in flags and "=" in word]
            default = keyword(call, "default")
            if len(told) > 1 or keyword(call, "nargs") is not None or keyword(call, "action") is not None:
                return None
            return told[0] if told else None if default is None else self.text(default, depth)
        return None
