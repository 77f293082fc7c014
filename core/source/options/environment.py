"""What a trainer reads from its environment and from ``sys.argv``."""

import ast
from collections.abc import Iterator

from ..project_modules import Module, Project, resolved
from ..syntax import constant, text_of
from .class_fields import Classes
from .option import Option, Takes


def environment_options(module: Module, _project: Project, _classes: Classes) -> Iterator[Option]:
    for node in module.nodes:
        name = environment_name(module, node)
        if name is not None:
            default = constant(node.args[1]) if isinstance(node, ast.Call) and len(node.args) > 1 else None
            yield Option(
                name=name,
                dest=f"${name}",
                kind="environment",
                default=default,
                file=module.shown,
                line=node.lineno,  # type: ignore[attr-defined]
            )


def environment_name(module: Module, node: ast.AST) -> str | None:
    """The variable that an expression reads from the environment; None if it is no such expression."""
    if isinstance(node, ast.Call) and node.args:
        called = resolved(module, node.func)
        if called in {"os.environ.get", "os.getenv", "os.environ.pop", "environ.get", "getenv"} or called.endswith(
            (".os.getenv", "os.environ.get")
        ):
            return text_of(node.args[0])
    if isinstance(node, ast.Subscript) and resolved(module, node.value) in {"os.environ", ".os.environ"}:
        return text_of(node.slice)
    return None


def argv_index(module: Module, node: ast.AST) -> int | None:
    """N for ``sys.argv[N]``, else None."""
    if not isinstance(node, ast.Subscript) or not resolved(module, node.value).endswith("sys.argv"):
        return None
    number = constant(node.slice)
    return number if isinstance(number, int) and number > 0 else None


def argv_searched(node: ast.AST) -> str | None:
    """``--resume`` for ``sys.argv.index("--resume")``, behind which its value stands; else None."""
    match node:
        case ast.Call(func=ast.Attribute(value=searched, attr="index"), args=[word, *_]):
            name = text_of(word)
            known = name is not None and name.startswith("-") and "argv" in ast.unparse(searched)
            return name if known else None
    return None


def argv_options(module: Module, _project: Project, _classes: Classes) -> Iterator[Option]:
    valued = {name for node in module.nodes if (name := argv_searched(node)) is not None}
    for node in module.nodes:
        number = argv_index(module, node)
        if number is not None:
            yield Option(
                name=f"argument {number}",
                dest=f"$argv{number}",
                kind="positional",
                file=module.shown,
                line=node.lineno,  # type: ignore[attr-defined]
            )
        if isinstance(node, ast.Compare) and len(node.comparators) == 1 and isinstance(node.ops[0], ast.In):
            name = text_of(node.left)
            if name is not None and name.startswith("-") and "argv" in ast.unparse(node.comparators[0]):
                takes: Takes = "value" if name in valued else "flag"
                default = None if name in valued else False
                yield Option(
                    name=name, dest=f"$argv{name}", takes=takes, default=default, file=module.shown, line=node.lineno
                )
