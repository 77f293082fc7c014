"""Subcommands (``tool train …``): which of them a command runs, and what of the source belongs to the others."""

import ast
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..project_modules import Module, Project
from ..syntax import Function, dotted, keyword, last, own_nodes, parameters, text_of
from .option import Option

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
    dests: tuple[Option, ...]

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
    functions: dict[str, list[tuple[Module, Function]]] = defaultdict(list)
    for module in project.modules:
        for function in module.functions:
            functions[function.name].append((module, function))
    of_function = _decorated(project)
    parsers: dict[tuple[int, str], set[str]] = defaultdict(set)
    of_call: dict[int, frozenset[str]] = {}
    dests: list[Option] = []
    if not any("add_subparsers" in module.text for module in project.modules):
        return Subcommands(frozenset(of_function.values()), of_function, of_call, ())
    scopes = [(m, scope, list(own_nodes(scope))) for m in project.modules for scope in (m.tree, *m.functions)]
    for last_round in (False, False, True):
        for module, scope, nodes in scopes:
            for node in nodes:
                made = node.value if isinstance(node, ast.Assign) else None
                if isinstance(node, ast.Assign) and isinstance(made, ast.Call):
                    for target in node.targets:
                        parsers[id(scope), dotted(target)] |= _made(made, scope, parsers)
                if isinstance(node, ast.Call):
                    if last(dotted(node.func)) == "add_subparsers":
                        parsers[id(scope), dotted(node.func).rpartition(".")[0]] |= {BEFORE}
                    _handed_on(node, scope, functions, parsers)
                    if last_round:
                        _note(module, node, scope, parsers, functions, of_call, of_function, dests)
    names = {*of_function.values(), *(name for made in parsers.values() for name in made)} - {"", BEFORE}
    return Subcommands(frozenset(names), of_function, of_call, tuple(dests))


def _decorated(project: Project) -> dict[int, str]:
    """Functions that click and typer call for a subcommand: those of a group, or one of several of an application."""
    taken = {
        last(dotted(arg))
        for module in project.modules
        for call in module.calls
        if last(dotted(call.func)) == "add_command"
        for arg in call.args
    }
    found: dict[int, str] = {}
    for module in project.modules:
        for function in module.functions:
            for decorator in function.decorator_list:
                name = dotted(decorator)
                if not _COMMAND.search(name):
                    continue
                owner = name.rpartition(".")[0]
                if module.aliases.get(owner, owner) in {"", *_ALONE} and function.name not in taken:
                    continue
                told = [*decorator.args, keyword(decorator, "name")] if isinstance(decorator, ast.Call) else []
                written = next((text for each in told if (text := text_of(each)) is not None), None)
                found[id(function)] = written or function.name.replace("_", "-").lower()
    return found if len(found) > 1 else {}


def _made(call: ast.Call, scope: ast.AST, parsers: Mapping[tuple[int, str], set[str]]) -> set[str]:
    """The subcommands whose parser, or group of one, a call makes."""
    name = last(dotted(call.func))
    if name == "add_parser":
        return {text for arg in call.args[:1] if (text := text_of(arg)) is not None}
    if name in _GROUPS and isinstance(call.func, ast.Attribute):
        return parsers.get((id(scope), dotted(call.func.value)), set())
    return {""} if name.endswith("ArgumentParser") else set()


def _handed_on(
    call: ast.Call,
    scope: ast.AST,
    functions: Mapping[str, list[tuple[Module, Function]]],
    parsers: dict[tuple[int, str], set[str]],
) -> None:
    """A parser that a function gets as an argument."""
    for _, function in functions.get(last(dotted(call.func)), ()):
        names = [p.arg for p in parameters(function) if p.arg not in {"self", "cls"}]
        given = [*zip(names, call.args, strict=False), *((k.arg, k.value) for k in call.keywords if k.arg)]
        for name, value in given:
            if known := parsers.get((id(scope), dotted(value))):
                parsers[id(function), name] |= known


def _note(  # noqa: PLR0917
    module: Module,
    call: ast.Call,
    scope: ast.AST,
    parsers: Mapping[tuple[int, str], set[str]],
    functions: Mapping[str, list[tuple[Module, Function]]],
    of_call: dict[int, frozenset[str]],
    of_function: dict[int, str],
    dests: list[Option],
) -> None:
    if not isinstance(call.func, ast.Attribute):
        return
    name, on = call.func.attr, call.func.value
    owners = _made(on, scope, parsers) if isinstance(on, ast.Call) else parsers.get((id(scope), dotted(on)), set())
    if name == "add_argument" and owners:
        of_call[id(call)] = frozenset({BEFORE} if BEFORE in owners else owners)
    elif name == "set_defaults" and len(owners) == 1 and owners != {""}:
        for each in call.keywords:
            for _, function in functions.get(last(dotted(each.value)), ()):
                of_function[id(function)] = next(iter(owners))
    elif name == "add_subparsers" and (dest := text_of(keyword(call, "dest"))) is not None:
        dests.append(Option(name=dest, dest=dest, kind="switch", file=module.shown, line=call.lineno))
