"""Small questions about syntax trees of Python."""

import ast
from collections.abc import Iterator
from typing import Any

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
Function = ast.FunctionDef | ast.AsyncFunctionDef


def dotted(node: ast.AST) -> str:
    """``a.b.c`` of a name or an attribute; a call or an index inside is left out. "" for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        before = dotted(node.value)
        return f"{before}.{node.attr}" if before else node.attr
    if isinstance(node, ast.Call):
        return dotted(node.func)
    if isinstance(node, ast.Subscript):
        return dotted(node.value)
    return ""


def last(name: str) -> str:
    """``torch.load`` → ``load``."""
    return name.rpartition(".")[2]


def called(call: ast.Call) -> str:
    return last(dotted(call.func))


def root_of(node: ast.AST) -> str:
    """The first name of ``a.b.c``; "" if it does not begin with one."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def own_name(node: ast.AST) -> str:
    """The last name of a variable, a field or a key (``cfg["resume"]``); "" for another expression."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.Subscript(slice=ast.Constant(value=str() as name)):
            return name
    return ""


def text_of(node: ast.AST | None) -> str | None:
    """A constant text; None for anything else."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def texts_in(node: ast.expr | None) -> str:
    if node is None:
        return ""
    parts = [text for each in ast.walk(node) if (text := text_of(each)) is not None]
    return " ".join(" ".join(parts).split())[:400]


def constant(node: ast.AST | None) -> Any:
    """The value of a literal; None for anything else."""
    if node is None:
        return None
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    """The value of a keyword of a call; None if it is not given."""
    return next((k.value for k in call.keywords if k.arg == name), None)


def parameters(function: Function | ast.Lambda) -> list[ast.arg]:
    given = function.args
    return [*given.posonlyargs, *given.args, *given.kwonlyargs]


def default_of(function: Function, name: str) -> ast.expr | None:
    """The default of a parameter; None without one."""
    given = function.args
    positional = [*given.posonlyargs, *given.args]
    for arg, value in zip(reversed(positional), reversed(given.defaults), strict=False):
        if arg.arg == name:
            return value
    for arg, default in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        if arg.arg == name:
            return default
    return None


def ends(body: list[ast.stmt]) -> bool:
    """Whether nothing after such a block runs."""
    return bool(body) and isinstance(body[-1], ast.Return | ast.Raise | ast.Continue | ast.Break)


def own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a module or function without those of the functions in it."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, FUNCTIONS):
            yield child
            yield from own_nodes(child)
