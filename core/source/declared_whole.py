"""Whether the options that are seen in a project's source are all that it takes."""

import ast
import re
from collections.abc import Iterator

from .project_modules import Module, Project
from .syntax import dotted, last, own_nodes

_OPEN = re.compile(
    r"parse_known_args|allow_extra_args|ignore_unknown_options|HfArgumentParser|LightningCLI|\bhydra\b|\btyro\b"
    r"|\bfire\.Fire\b|\bdocopt\(|\babsl\b|\bfrom_cli\(|jsonargparse|simple_parsing|\bTap\b|configargparse"
)
"""Texts of sources that take more than they declare."""
_PARSED = re.compile(r"\.(command|group|callback)$")
"""Decorators of functions that parse the command line."""


def declares_all(project: Project) -> bool:
    """Whether an option that is not seen would be refused: all was read, and nothing is added out of sight.

    Out of sight: names that are computed (``add_argument(f"--{name}")``), and parsers that a library makes or fills.
    """
    if project.unread or not _parses(project):
        return False
    own = {each.name for module in project.modules for each in (*module.functions, *module.classes)}
    return not any(_OPEN.search(module.text) or _adds_unseen(module, own) for module in project.modules)


def _parses(project: Project) -> bool:
    """Whether the file that runs comes to a parser which ends at an option that it does not know.

    The parser of a module that is only imported for something else is none of this command.
    """
    functions = [function for module in project.modules for function in module.functions]
    if any(_PARSED.search(dotted(each)) for function in functions for each in function.decorator_list):
        return True
    bodies = {function.name: function for function in reversed(functions)}
    main = project.modules[0].tree
    waiting: list[ast.stmt] = [
        statement
        for module in project.modules
        for statement in module.tree.body
        if module.tree is main or not (isinstance(statement, ast.If) and "__name__" in ast.unparse(statement.test))
    ]
    seen: set[str] = set()
    while waiting:
        for node in own_nodes(ast.Module([waiting.pop()], [])):
            name = dotted(node.func) if isinstance(node, ast.Call) else ""
            if last(name) in {"parse_args", "parse_intermixed_args"} or name == "typer.run":
                return True
            if last(name) in bodies and last(name) not in seen:
                seen.add(last(name))
                waiting += bodies[last(name)].body
    return False


def _adds_unseen(module: Module, own: set[str]) -> bool:
    parsers = set(_parsers(module))
    for call in module.calls:
        name = _last_name(call)
        if (
            name == "parse_args"
            and isinstance(call.func, ast.Attribute)
            and not _made_here(module, call.func.value, own)
        ):
            return True
        if name in {"add_argument", "add_option"} and not all(
            isinstance(arg, ast.Constant) and isinstance(arg.value, str) for arg in call.args
        ):
            return True
        if name == "ArgumentParser" and any(keyword.arg in {"parents", None} for keyword in call.keywords):
            return True
        given = (*call.args, *(keyword.value for keyword in call.keywords))
        if name not in own and any(dotted(arg) in parsers for arg in given):
            return True
    return False


def _parsers(module: Module) -> Iterator[str]:
    """Names of the parsers that are made here."""
    for node in module.nodes:
        made = node.value if isinstance(node, ast.Assign) else None
        if isinstance(node, ast.Assign) and isinstance(made, ast.Call) and _last_name(made) == "ArgumentParser":
            yield from (name for target in node.targets if (name := dotted(target)))


def _made_here(module: Module, parser: ast.expr, own: set[str]) -> bool:
    """Whether a parser is none that a library makes."""
    made = [parser] if isinstance(parser, ast.Call) else []
    for node in module.nodes:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            made += [node.value for target in node.targets if dotted(target) == dotted(parser)]
    return all(_last_name(call) in own or _last_name(call).endswith("ArgumentParser") for call in made)


def _last_name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
