"""What the parsers of a project take: which subcommands there are (``tool train …``), and whether all is seen."""

import ast
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from .project import Function, Module, Project, called, dotted, keyword, last, own_nodes, parameters, text_of

BEFORE = "<before>"
"""``Option.after`` of an option of the outer parser: it must stand before the subcommand."""
_COMMAND = re.compile(r"(?:^|\.)command$")
_GROUPS = frozenset({"add_argument_group", "add_mutually_exclusive_group"})
_ALONE = frozenset({"click", "rich_click", "asyncclick"})
"""``@click.command()`` is a program of its own, unless a group takes it in by ``add_command``."""


class Subcommands(NamedTuple):
    """What belongs to which subcommand.

    ``names``: of all of them. ``of_function``: id of the function that a subcommand calls → its name. ``of_call``: id
    of an ``add_argument`` → the subcommands that have it. ``dests``: the options that hold the name of the one that is
    run.
    """

    names: frozenset[str]
    of_function: Mapping[int, str]
    of_call: Mapping[int, frozenset[str]]
    dests: tuple[str, ...]

    def after(self, function: Function) -> str:
        """``Option.after`` of what this function takes: a group's own options stand before the subcommand."""
        if (name := self.of_function.get(id(function))) is not None:
            return name
        groups = {last(dotted(each)) for each in function.decorator_list} & {"group", "callback"}
        return BEFORE if groups and self.of_function else ""

    def run_by(self, words: Sequence[str]) -> str:
        """The subcommand that these words of a command run; "" if none of them does."""
        return next((word for word in words if word in self.names), "")


def subcommands_of(project: Project) -> Subcommands:
    return _Subparsers(project).subcommands()


class _Subparsers:
    """``parsers``: (id of a function or module, name of a variable) → the subcommands whose parser it holds."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.functions: dict[str, list[Function]] = defaultdict(list)
        for module in project.modules:
            for function in module.functions:
                self.functions[function.name].append(function)
        self.parsers: dict[tuple[int, str], set[str]] = defaultdict(set)
        self.of_function = self._decorated()
        self.of_call: dict[int, frozenset[str]] = {}
        self.dests: list[str] = []

    def subcommands(self) -> Subcommands:
        modules = self.project.modules
        if any("add_subparsers" in module.text for module in modules):
            scopes = [(scope, list(own_nodes(scope))) for m in modules for scope in (m.tree, *m.functions)]
            for last_round in (False, False, True):
                for scope, nodes in scopes:
                    for node in nodes:
                        self._read(node, scope)
                        if last_round and isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                            self._note(node, node.func, scope)
        names = {*self.of_function.values(), *(name for made in self.parsers.values() for name in made)} - {"", BEFORE}
        return Subcommands(frozenset(names), self.of_function, self.of_call, tuple(self.dests))

    def _decorated(self) -> dict[int, str]:
        """Functions that click and typer call for a subcommand: of a group, or one of several of an application."""
        calls = [call for module in self.project.modules for call in module.calls]
        taken = {last(dotted(arg)) for call in calls if called(call) == "add_command" for arg in call.args}
        found: dict[int, str] = {}
        for module in self.project.modules:
            for function in module.functions:
                for decorator in function.decorator_list:
                    name = dotted(decorator)
                    owner = name.rpartition(".")[0]
                    alone = module.aliases.get(owner, owner) in {"", *_ALONE} and function.name not in taken
                    if _COMMAND.search(name) and not alone:
                        told = [*decorator.args, keyword(decorator, "name")] if isinstance(decorator, ast.Call) else []
                        written = next((text for each in told if (text := text_of(each)) is not None), None)
                        found[id(function)] = written or function.name.replace("_", "-").lower()
        return found if len(found) > 1 else {}

    def _read(self, node: ast.AST, scope: ast.AST) -> None:
        """Note the parsers that a statement makes, and those that a call hands on to a function as an argument."""
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            for target in node.targets:
                self.parsers[id(scope), dotted(target)] |= self._made(node.value, scope)
        if isinstance(node, ast.Call):
            if called(node) == "add_subparsers":
                self.parsers[id(scope), dotted(node.func).rpartition(".")[0]] |= {BEFORE}
            for function in self.functions.get(called(node), ()):
                names = [p.arg for p in parameters(function) if p.arg not in {"self", "cls"}]
                given = [*zip(names, node.args, strict=False), *((k.arg, k.value) for k in node.keywords if k.arg)]
                for name, value in given:
                    if known := self.parsers.get((id(scope), dotted(value))):
                        self.parsers[id(function), name] |= known

    def _made(self, call: ast.Call, scope: ast.AST) -> set[str]:
        name = called(call)
        if name == "add_parser":
            return {text for arg in call.args[:1] if (text := text_of(arg)) is not None}
        if name in _GROUPS and isinstance(call.func, ast.Attribute):
            return self.parsers.get((id(scope), dotted(call.func.value)), set())
        return {""} if name.endswith("ArgumentParser") else set()

    def _note(self, call: ast.Call, method: ast.Attribute, scope: ast.AST) -> None:
        on = method.value
        owners = self._made(on, scope) if isinstance(on, ast.Call) else self.parsers.get((id(scope), dotted(on)), set())
        if method.attr == "add_argument" and owners:
            self.of_call[id(call)] = frozenset({BEFORE} if BEFORE in owners else owners)
        elif method.attr == "set_defaults" and len(owners) == 1 and owners != {""}:
            for each in call.keywords:
                for function in self.functions.get(last(dotted(each.value)), ()):
                    self.of_function[id(function)] = next(iter(owners))
        elif method.attr == "add_subparsers" and (dest := text_of(keyword(call, "dest"))) is not None:
            self.dests.append(dest)


# --- whether the options that are seen are all that a project takes ---

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
    while waiting:
        for node in own_nodes(ast.Module([waiting.pop()], [])):
            name = dotted(node.func) if isinstance(node, ast.Call) else ""
            if last(name) in {"parse_args", "parse_intermixed_args"} or name == "typer.run":
                return True
            if (function := bodies.pop(last(name), None)) is not None:
                waiting += function.body
    return False


def _adds_unseen(module: Module, own: set[str]) -> bool:
    """Whether a parser is filled out of sight, or is one that a library makes."""
    assigned = [node for node in module.nodes if isinstance(node, ast.Assign)]
    made = [(n.value, dotted(to)) for n in assigned for to in n.targets if isinstance(n.value, ast.Call)]
    parsers = {name for call, name in made if name and called(call) == "ArgumentParser"}
    for call in module.calls:
        name, texts = called(call), [text_of(arg) for arg in call.args]
        of = call.func.value if isinstance(call.func, ast.Attribute) else None
        makers = [maker for maker, to in made if of is not None and to == dotted(of)]
        makers += [of] if isinstance(of, ast.Call) else []
        seen = of is None or all(called(each) in own or called(each).endswith("ArgumentParser") for each in makers)
        given = (*call.args, *(keyword.value for keyword in call.keywords))
        if (
            (name == "parse_args" and not seen)
            or (name in {"add_argument", "add_option"} and None in texts)
            or (name == "ArgumentParser" and any(keyword.arg in {"parents", None} for keyword in call.keywords))
            or (name not in own and any(dotted(arg) in parsers for arg in given))
        ):
            return True
    return False
