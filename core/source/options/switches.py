"""Switches that the source sets itself (``RESUME = False``): values that nothing outside and no other line changes."""

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from typing import Any

from .. import words
from ..project_modules import Module, Project
from ..syntax import Function, default_of, dotted, keyword, last, own_nodes, parameters, text_of
from .option import Option

_WORD = re.compile(r"[A-Za-z_-]{0,20}")
_REPLACED = re.compile(r"exec\(open\(")
_MERGES = frozenset({"update", "merge", "merge_from_file", "merge_from_list", "setattr", "merge_with", "deep_update"})
"""Calls that may set any value of an object."""
_UNKNOWN = object()


def switches(project: Project, taken: Collection[str]) -> Iterator[Option]:
    """``taken``: destinations of options; their values come from outside."""
    if not project.modules or _REPLACED.search(project.modules[0].text):
        return
    everywhere = {name for module in project.modules for node in module.nodes for name in _rebound(node)}
    for module in project.modules:
        yield from _variables(module, module.tree, "<module>", everywhere)
        for function in module.functions:
            yield from _variables(module, function, function.name, everywhere | set(taken))
    yield from _parameters(project, taken)
    yield from _members(project, taken)


def _rebound(node: ast.AST) -> Iterator[str]:
    """Names that are set from another scope."""
    if isinstance(node, ast.Global | ast.Nonlocal):
        yield from node.names
    elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name):
        yield node.attr


def _variables(module: Module, scope: ast.Module | Function, name: str, others: Collection[str]) -> Iterator[Option]:
    """Variables that one statement sets."""
    nodes = list(own_nodes(scope))
    stores = Counter(n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
    given = {p.arg for p in parameters(scope)} if not isinstance(scope, ast.Module) else set()
    for node in nodes:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if isinstance(node, ast.Assign | ast.AnnAssign) and len(targets) == 1 and isinstance(targets[0], ast.Name):
            variable, value = targets[0].id, _literal(node.value)
            if value is not _UNKNOWN and stores[variable] == 1 and variable not in {*others, *given}:
                yield _switch(module, variable, value, node.lineno, name)


def _parameters(project: Project, taken: Collection[str]) -> Iterator[Option]:
    """Parameters that every call leaves at their default, or gives the same literal."""
    calls: dict[str, list[ast.Call]] = defaultdict(list)
    for module in project.modules:
        for call in module.calls:
            calls[last(dotted(call.func))].append(call)
    owners = {id(f): c.name for m in project.modules for c in m.classes for f in c.body if isinstance(f, Function)}
    for module in project.modules:
        for function in module.functions:
            owner = owners.get(id(function), "")
            made = calls[owner if function.name == "__init__" else function.name]
            names = [p.arg for p in parameters(function)]
            for place, name in enumerate(names):
                default = default_of(function, name)
                if default is None or name in taken or not made:
                    continue
                at = place - (names[0] in {"self", "cls"})
                values = {repr(_given(call, name, at, default)) for call in made}
                value = _given(made[0], name, at, default)
                if len(values) == 1 and value is not _UNKNOWN:
                    yield _switch(module, name, value, function.lineno, function.name)


def _given(call: ast.Call, name: str, at: int, default: ast.expr) -> Any:
    if any(isinstance(arg, ast.Starred) for arg in call.args) or any(k.arg is None for k in call.keywords):
        return _UNKNOWN
    return _literal(call.args[at] if at < len(call.args) else keyword(call, name) or default)


def _members(project: Project, taken: Collection[str]) -> Iterator[Option]:
    """Fields of classes and keys of dictionaries that are named after a resume, wherever they are set the same."""
    found: dict[str, list[tuple[Module, int, ast.expr | None]]] = defaultdict(list)
    for module in project.modules:
        if any(last(dotted(call.func)) in _MERGES for call in module.calls):
            return
        for node in module.nodes:
            for name, value in _set_in(node):
                if words.RESUME.search(name) or words.CHECKPOINT.search(name):
                    found[name].append((module, getattr(value or node, "lineno", 0), value))
    for name, places in found.items():
        values = [_literal(value) for _, _, value in places]
        if name not in taken and values[0] is not _UNKNOWN and len({repr(value) for value in values}) == 1:
            module, line, _ = places[0]
            yield _switch(module, name, values[0], line, "")


def _set_in(node: ast.AST) -> Iterator[tuple[str, ast.expr | None]]:
    match node:
        case ast.ClassDef(body=body):
            for field in body:
                match field:
                    case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
                        yield name, field.value
        case ast.Dict(keys=keys, values=values):
            yield from ((text, v) for k, v in zip(keys, values, strict=True) if (text := text_of(k)) is not None)
        case ast.Call(keywords=keywords):
            yield from ((k.arg, k.value) for k in keywords if k.arg is not None)
        case ast.Assign(targets=[ast.Attribute(attr=name)], value=value):
            yield name, value
        case ast.Assign(targets=[ast.Subscript(slice=ast.Constant(value=str() as name))], value=value):
            yield name, value


def _literal(node: ast.expr | None) -> Any:
    """A literal that says yes, no or a word; it is no path."""
    if not isinstance(node, ast.Constant):
        return _UNKNOWN
    value = node.value
    plain = value is None or isinstance(value, bool) or value == 0
    return value if plain or (isinstance(value, str) and _WORD.fullmatch(value)) else _UNKNOWN


def _switch(module: Module, name: str, value: Any, line: int, parameter: str) -> Option:
    return Option(
        name=name, dest=name, kind="switch", takes="truth" if isinstance(value, bool) else "value", default=value,
        file=module.shown, line=line, parameter=parameter,
    )  # fmt: skip
