"""What a script needs to start: packages, and a file that it asks for."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from . import words
from .launch_target import Target
from .project import Module, Project, module_files
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
