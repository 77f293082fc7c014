"""The functions and modules of a project, and those among them in which a training is loaded or restored."""

import ast
from collections.abc import Collection, Sequence
from typing import NamedTuple

import msgspec

from .. import words
from ..project_modules import Module, Project
from ..syntax import FUNCTIONS, Function, dotted, last, own_nodes, text_of
from .call_names import DATA_LOADS, KNOWN_WAYS

MOST_SAME_NAME = 4
"""Functions of one name; more say nothing about which is meant."""


class Scope(msgspec.Struct):
    name: str
    module: Module
    node: Function | ast.Lambda | ast.Module
    parent: "Scope | None" = None
    owner: str = ""
    """The class that it is in."""


class Scopes:
    """``relevant``: modules, and functions that matter. ``functions``: by name. ``classes``: constructors by name.

    ``asked``: destinations of options that are named after a resume: who reads one of them matters. ``others``: ids of
    functions that only another subcommand calls.
    """

    def __init__(self, project: Project, asked: Collection[str], others: Collection[int]) -> None:
        self.functions: dict[str, list[Scope]] = {}
        self.classes: dict[str, list[Scope]] = {}
        self.all: list[Scope] = []
        for module in project.modules:
            top = Scope("<module>", module, module.tree)
            self.all.append(top)
            self._collect_in(module.tree, top, "")
        self.relevant = self._relevant(asked, others)

    def _collect_in(self, node: ast.AST, parent: Scope, owner: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, FUNCTIONS):
                scope = Scope(child.name, parent.module, child, parent, owner)
                self.all.append(scope)
                self.functions.setdefault(child.name, []).append(scope)
                if owner and child.name in {"__init__", "__call__", "__post_init__"}:
                    self.classes.setdefault(owner, []).append(scope)
                self._collect_in(child, scope, "")
            elif isinstance(child, ast.ClassDef):
                self.classes.setdefault(child.name, [])
                self._collect_in(child, parent, child.name)
            else:
                self._collect_in(child, parent, owner)

    def _relevant(self, asked: Collection[str], others: Collection[int]) -> list[Scope]:
        """Functions that load or restore something, those that call them, and those that look for files for them."""
        facts = [_facts(scope, asked) for scope in self.all]
        names = [{scope.name, scope.owner} if scope.name == "__init__" else {scope.name} for scope in self.all]
        chosen = {n for n, fact in enumerate(facts) if fact.loads}
        while True:
            wanted = {name for n in chosen for name in names[n] if len(self.functions.get(name, ())) <= MOST_SAME_NAME}
            wanted -= {"", "<module>", "forward", "__init__"}
            more = {n for n, fact in enumerate(facts) if n not in chosen and fact.called & wanted}
            if not more:
                break
            chosen |= more
        called = {name for n in chosen for name in facts[n].called}
        chosen |= {n for n, fact in enumerate(facts) if (fact.looks and names[n] & called) or fact.sets}
        chosen -= self._of_others(facts, others)
        return [scope for n, scope in enumerate(self.all) if n in chosen or scope.name == "<module>"]

    def _of_others(self, facts: Sequence["_Facts"], others: Collection[int]) -> set[int]:
        """The functions of other subcommands, and those that they alone call."""
        left_out = {n for n, scope in enumerate(self.all) if id(scope.node) in others}
        while left_out:
            called = {name for n in left_out for name in facts[n].called}
            used = {name for n, fact in enumerate(facts) if n not in left_out for name in fact.called}
            more = {n for n, scope in enumerate(self.all) if scope.name in called - used and scope.name != "__init__"}
            if more <= left_out:
                break
            left_out |= more
        return left_out


class _Facts(NamedTuple):
    """What a scope does by itself: it reads or restores something, looks for files, or stores what a resume uses."""

    called: set[str]
    loads: bool
    looks: bool
    sets: bool


def _facts(scope: Scope, asked: Collection[str]) -> _Facts:
    called: set[str] = set()
    loads = looks = sets = False
    for node in own_nodes(scope.node):
        if isinstance(node, ast.Call):
            name = last(dotted(node.func))
            called.add(name)
            loads |= bool(words.LOADS.search(name) and name not in DATA_LOADS) or name == "open"
            given = {k.arg for k in node.keywords if k.arg is not None}
            loads |= any(words.WHOLE_KEYWORDS.search(each) for each in given)
            loads |= bool(words.GOES_ON.search(name)) or any(w.call == name or w.keyword in given for w in KNOWN_WAYS)
            looks |= name in words.LOOKS or bool(words.FINDS.search(name))
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            sets |= bool(words.RESUME.search(node.attr) or words.CHECKPOINT.search(node.attr))
        elif isinstance(node, ast.Attribute | ast.Name):
            loads |= (node.attr if isinstance(node, ast.Attribute) else node.id) in asked
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            text = text_of(node.slice) or ""
            sets |= bool(words.RESUME.search(text) or words.CHECKPOINT.search(text))
    return _Facts(called, loads, looks, sets)
