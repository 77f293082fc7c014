"""What a script needs to start: packages, a file that it asks for, and what it refuses with a text of its own."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from ..model.resume_way import OwnEnd
from . import words
from .launch_target import Target
from .project import Module, Project, module_files, resolved
from .syntax import called, own_name


class NeededImport(msgspec.Struct, frozen=True):
    """The first part of a module's name, and the place of the import (``train.py:3``)."""

    name: str
    place: str


def needed_imports(project: Project, target: Target) -> tuple[NeededImport, ...]:
    """The packages that a script cannot start without, each once; imports of the project itself are followed.

    An import inside a function, a test or a ``try`` is not needed to start.
    """
    modules = {module.path: module for module in project.modules}
    found: dict[str, NeededImport] = {}
    waiting, seen = list(project.modules[:1]), set[Path]()
    while waiting:
        module = waiting.pop(0)
        if module.path in seen:
            continue
        seen.add(module.path)
        roots = (module.path.parent, *target.roots)
        for name, line in _at_load(module):
            own = [path for root in roots for path in module_files(name, (root,)) if path in modules]
            waiting += [modules[path] for path in own]
            top = name.partition(".")[0]
            if not own and not any((root / top).is_dir() or (root / f"{top}.py").is_file() for root in roots):
                found.setdefault(top, NeededImport(top, f"{module.shown}:{line}"))
    return tuple(found.values())


def _at_load(module: Module) -> Iterator[tuple[str, int]]:
    for node in module.tree.body:
        if isinstance(node, ast.Import):
            yield from ((name.name, node.lineno) for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level and node.module != "__future__":
            yield node.module, node.lineno


_RUNS = frozenset({"system", "popen", "run", "call", "check_call", "check_output", "getoutput", "Popen", "main"})
_INSTALLS = re.compile(r"\b(pip3?|uv|conda|mamba|apt(-get)?|poetry)\b.*\b(install|add|sync)\b|ensurepip", re.DOTALL)
_PATHS = re.compile(r"sys\.path\b|addsitedir|sys\.modules|sys\.meta_path|pkgutil\.extend_path")


def finds_modules_itself(project: Project) -> bool:
    """Whether it changes where Python looks for modules, or runs an installer; a message that names one is none."""
    return any(
        _PATHS.search(module.text)
        or any(called(call) in _RUNS and _INSTALLS.search(ast.unparse(call)) for call in module.calls)
        for module in project.modules
    )


def goes_on_without(project: Project, name: str) -> str | None:
    """The place (``train.py:41``) of a test whether the value ``name`` exists; None if none asks, or if one ends it.

    ``name``: the variable or attribute that holds the path (``args.resume`` is ``resume``).
    """
    asked = [
        (f"{module.shown}:{node.lineno}", node)
        for module in project.modules
        for node in module.nodes
        if isinstance(node, ast.If | ast.IfExp) and _asks(node.test, name)
    ]
    return asked[0][0] if asked and not any(_ends(node) for _, node in asked) else None


def _asks(test: ast.expr, name: str) -> bool:
    looks = [call for call in ast.walk(test) if isinstance(call, ast.Call) and called(call) in words.LOOKS]
    return any(own_name(each) == name for call in looks for each in ast.walk(call))


_ENDS = frozenset({"exit", "_exit", "error", "fail", "abort", "die", "quit"})


def _ends(node: ast.If | ast.IfExp) -> bool:
    return isinstance(node, ast.If) and any(
        isinstance(each, ast.Raise) or (isinstance(each, ast.Call) and called(each) in _ENDS) for each in ast.walk(node)
    )


def own_ends(project: Project) -> tuple[OwnEnd, ...]:
    """The texts with which the project ends itself: ``sys.exit("no recipe")``, ``raise SystemExit(f"no {name}")``.

    None of an ``except``: what happened there is told by an exception, and the text is only its name.
    """
    found = (end for module in project.modules if "xit" in module.text for end in _own_ends(module, module.tree, ""))
    return tuple(dict.fromkeys(found))[:MOST_ENDS]


MOST_ENDS = 100
LONGEST_CODE = 400
_EXITS = frozenset({"sys.exit", "exit", "quit", "SystemExit"})
_FILLED = {"%": re.compile(r"%(?:\(\w+\))?[-+ #0]*\d*(?:\.\d+)?[a-zA-Z]"), "format": re.compile(r"\{[^{}]*\}")}
"""Placeholders of ``"no %s" % name`` and of ``"no {}".format(name)``."""
_WORD = re.compile(r"[^\W\d_]{2,}")


def _own_ends(module: Module, node: ast.AST, code: str) -> Iterator[OwnEnd]:
    """``code``: the function, the tests and the statement around the node."""
    match node:
        case ast.ExceptHandler():
            return
        case ast.If(test=test) | ast.While(test=test):
            code = f"{code} {ast.unparse(test)}"
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            code = name
        case ast.Expr() | ast.Raise():
            code = f"{code} {ast.unparse(node)}"
        case ast.Call(args=[text]) if resolved(module, node.func) in _EXITS:
            parts = _parts(text)
            if len(_WORD.findall(" ".join(parts))) > 1:
                yield OwnEnd(parts, code[:LONGEST_CODE], f"{module.shown}:{node.lineno}")
    for child in ast.iter_child_nodes(node):
        yield from _own_ends(module, child, code)


def _parts(text: ast.expr) -> tuple[str, ...]:
    """The last line of a text as what is written out of it, before, between and after what is filled in."""
    return tuple(re.split("\0+", _template(text).rstrip().rpartition("\n")[2]))


def _template(text: ast.expr) -> str:
    match text:
        case ast.Constant(value=str() as written):
            return written.replace("\0", "")
        case ast.JoinedStr(values=values):
            return "".join(_template(each) for each in values)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _template(left) + _template(right)
        case ast.BinOp(left=ast.Constant(value=str() as written), op=ast.Mod()):
            return _FILLED["%"].sub("\0", written)
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str() as written), attr="format")):
            return _FILLED["format"].sub("\0", written)
    return "\0"
