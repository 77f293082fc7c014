"""The packages that a script cannot start without: imported when it is loaded, under no condition."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from .launch_target import Target
from .project_modules import Module, Project
from .syntax import dotted, last


class NeededImport(msgspec.Struct, frozen=True):
    """The first part of a module's name, and the place of the import (``train.py:3``)."""

    name: str
    place: str


def needed_imports(project: Project, target: Target) -> tuple[NeededImport, ...]:
    """Each package once, at its first place; those of the project itself are followed.

    An import inside a function, a test or a ``try`` is not needed to start.
    """
    modules = {module.path: module for module in project.modules}
    first = project.modules[0] if project.modules else None
    found: dict[str, NeededImport] = {}
    waiting, seen = ([first] if first is not None else []), set[Path]()
    while waiting:
        module = waiting.pop(0)
        if module.path in seen:
            continue
        seen.add(module.path)
        for name, line in _at_load(module):
            own = [path for path in _files(name, (module.path.parent, *target.roots)) if path in modules]
            if own:
                waiting += [modules[path] for path in own]
            elif not _exists(name, (module.path.parent, *target.roots)):
                top = name.partition(".")[0]
                found.setdefault(top, NeededImport(top, f"{module.shown}:{line}"))
    return tuple(found.values())


def installs_packages(module: Module) -> bool:
    """Whether it runs an installer; a comment or a message that names one is none."""
    return any(last(dotted(call.func)) in _RUNS and _INSTALLS.search(ast.unparse(call)) for call in module.calls)


_RUNS = frozenset({"system", "popen", "run", "call", "check_call", "check_output", "getoutput", "Popen", "main"})
_INSTALLS = re.compile(r"\b(pip3?|uv|conda|mamba|apt(-get)?|poetry)\b.*\b(install|add|sync)\b|ensurepip", re.DOTALL)


def _at_load(module: Module) -> Iterator[tuple[str, int]]:
    for node in module.tree.body:
        if isinstance(node, ast.Import):
            yield from ((name.name, node.lineno) for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level and node.module != "__future__":
            yield node.module, node.lineno


def _files(name: str, roots: tuple[Path, ...]) -> list[Path]:
    relative = Path(*name.split("."))
    return [path for root in roots for path in (root / relative.with_suffix(".py"), root / relative / "__init__.py")]


def _exists(name: str, roots: tuple[Path, ...]) -> bool:
    """Whether the project has a file or a folder of that name, which is importable without a package file, too."""
    top = name.partition(".")[0]
    return any((root / top).is_dir() or (root / f"{top}.py").is_file() for root in roots)
