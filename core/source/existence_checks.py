"""Whether a script asks if a path exists before it uses it, and goes on without it if not."""

import ast
from collections.abc import Iterable

from . import words
from .project_modules import Module


def goes_on_without(modules: Iterable[Module], name: str) -> str | None:
    """The place (``train.py:41``) of a test whether the value ``name`` exists, none of whose branches ends the script.

    ``name``: the variable or attribute that holds the path (``args.resume`` is ``resume``). None: it does not ask, or
    it ends.
    """
    for module in modules:
        for node in module.nodes:
            if isinstance(node, ast.If | ast.IfExp) and _asks(node.test, name) and not _ends(node):
                return f"{module.shown}:{node.lineno}"
    return None


def _asks(test: ast.expr, name: str) -> bool:
    for call in ast.walk(test):
        if isinstance(call, ast.Call):
            called = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
            if called in words.LOOKS and any(_named(each) == name for each in ast.walk(call)):
                return True
    return False


def _named(node: ast.AST) -> str | None:
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return str(node.slice.value)
    return node.id if isinstance(node, ast.Name) else None


def _ends(node: ast.If | ast.IfExp) -> bool:
    if isinstance(node, ast.IfExp):
        return False
    for each in ast.walk(node):
        if isinstance(each, ast.Raise):
            return True
        if isinstance(each, ast.Call):
            called = each.func.attr if isinstance(each.func, ast.Attribute) else getattr(each.func, "id", "")
            if called in {"exit", "_exit", "error", "fail", "abort", "die", "quit"}:
                return True
    return False
