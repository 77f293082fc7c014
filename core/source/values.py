"""What expressions of a trainer's source are worth, as far as constants, the command's options and the config say it.

Nothing is run. What is not known is written into a text between two ``UNKNOWN`` marks, so that two paths which begin
with the same unknown folder still compare; a test of it is neither true nor false.
"""

import ast
import copy
import fnmatch
import itertools
import operator
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath
from types import MappingProxyType
from typing import Any

from . import words
from .options import Option, environment_name
from .project import (
    FUNCTIONS,
    Project,
    Scope,
    Scopes,
    Site,
    Step,
    called,
    constant,
    default_of,
    dotted,
    last,
    own_name,
    parameters,
    resolved,
    root_of,
    steps_of,
    text_of,
)

UNKNOWN = "\0"
UNKNOWN_PART = re.compile(r"\0[^\0]*\0")
DEEPEST = 12
DEEPEST_CALLS, MOST_WAYS = 4, 32
_OF_FIRST_RANK: dict[str, Any] = {
    "rank": 0, "local_rank": 0, "global_rank": 0, "world_rank": 0, "process_index": 0, "is_main_process": True,
    "is_local_main_process": True, "is_world_process_zero": True, "is_master": True, "master_process": True,
    "is_main": True, "is_global_zero": True,
}  # fmt: skip
"""What the process says of itself that writes the checkpoints."""
SAME_PATH = frozenset({"Path", "PurePath", "str", "abspath", "realpath", "expanduser", "expandvars", "normpath",
                        "fspath", "resolve", "absolute", "as_posix"})  # fmt: skip
_MERGES = frozenset({"merge", "merge_from_file", "merge_from_list", "setattr", "merge_with", "deep_update"})
"""Calls that may set any value of an object."""
_NO = frozenset({"", "none", "false", "0", "no", "off", "null"})


class _Some:
    """What holds at least one entry, or is one: how many and which is not known."""

    def __str__(self) -> str:
        return f"{UNKNOWN}entries{UNKNOWN}"

    def compared(self, op: ast.cmpop, right: Any, unknown: str) -> Any:
        """Its number, or itself, with a number or None."""
        if right is None:
            return isinstance(op, ast.NotEq | ast.IsNot)
        number = right if isinstance(right, int) else 2
        match op:
            case ast.Eq() | ast.NotEq() if number < 1:
                return isinstance(op, ast.NotEq)
            case ast.Gt() | ast.LtE() if number < 1:
                return isinstance(op, ast.Gt)
            case ast.GtE() | ast.Lt() if number <= 1:
                return isinstance(op, ast.GtE)
        return unknown


SOME = _Some()
_LISTS = frozenset({"listdir", "iterdir", "scandir", "glob", "iglob", "rglob"})

Reach = tuple[bool | None, Site | None]
"""Whether a place is reached (None: not known), and what decides."""


class KnownValues:
    """``options``: what each is set to, by its ``dest``. ``asked``: those that were asked for since it was emptied.

    ``only``: the one call of a function, by the id of its node, and the one value of a loop's variable, that count now.
    ``there``: a path that exists when the source runs, with something in it; "" = none is known to. ``saved``: what is
    saved, of which one is in it. ``calls``: all of them by their last names. ``handed``: functions that a call gets as
    an argument (``typer.run(main)``), by their names. ``sites``: of calls and dictionaries, by their ids. ``raises``:
    the statements that raise. ``steps``: of each function and module, by the id of its node.
    """

    def __init__(self, project: Project) -> None:
        self.project = project
        self.scopes = Scopes(project)
        self.options: Mapping[str, Any] = {}
        self.asked: set[str] = set()
        self.only: Mapping[Any, Any] = {}
        self.there = ""
        self.saved: Collection[str] = ()
        self.calls: dict[str, list[Site]] = {}
        self.handed: dict[str, list[Site]] = {}
        self.sites: dict[int, Site] = {}
        self.raises: list[Site] = []
        self.steps: dict[int, list[Step]] = {}
        self.of_parameters: set[tuple[str, str]] = set()
        self._bound: dict[tuple[int, str], list[ast.expr | None]] = {}
        self._attributes: dict[str, list[tuple[ast.expr, Scope]]] = {}
        self._fields: dict[str, list[tuple[ast.expr | None, Scope]]] = {}
        self._modules: dict[str, list[tuple[str, Scope]]] = {}
        self._sets: dict[str, list[tuple[ast.expr | None, Site]]] = {}
        """Fields and keys that are set after the options were read, to something else than an option of the name."""
        self._followed: set[tuple[int | str, str]] = set()
        """Parameters whose callers are being asked, so that a function which calls itself comes to an end."""
        self._rebound: set[str] = set()
        """Names that are set from another scope."""
        self._own = {part for each in project.modules for part in PurePath(each.shown).with_suffix("").parts}
        for scope in self.scopes.all:
            if isinstance(scope.node, ast.Module):
                path = scope.module.shown.removesuffix(".py").replace("/", ".")
                self._modules.setdefault(path.rpartition(".")[2], []).append((path, scope))
            else:
                for each in (*scope.node.decorator_list, scope.node.args):
                    self._note(each, Site(scope.node, scope))
            self.steps[id(scope.node)] = list(steps_of(scope.node.body, Site(scope.node, scope)))
            for step in self.steps[id(scope.node)]:
                for each in (*step.values, *step.targets):
                    self._note(each, step.site)
                self._bind(step, scope)

    def given(self, declared: Iterable[Option], options: Mapping[str, Any]) -> "KnownValues":
        found = copy.copy(self)
        found.options, found.asked, found.there = options, set(), ""
        found.of_parameters = {(o.parameter, o.dest) for o in declared if o.parameter}
        return found

    def _note(self, node: ast.AST, at: Site) -> None:
        """Note the calls and the named values in an expression. ``at``: what is around it."""
        at = at._replace(node=node, loops=(*at.loops, *(each.iter for each in getattr(node, "generators", ()))))
        match node:
            case ast.Call():
                self.calls.setdefault(called(node), []).append(at)
                self.sites[id(node)] = at
                for given in node.args:  # typer.run(main), mp.spawn(main, …)
                    if isinstance(given, ast.Name) and given.id in self.scopes.functions:
                        self.handed.setdefault(given.id, []).append(at)
                for each in node.keywords:
                    self._fields.setdefault(each.arg or "", []).append((each.value, at.scope))
            case ast.Dict(keys=keys, values=values):
                self.sites[id(node)] = at
                for key, value in zip(keys, values, strict=True):
                    self._fields.setdefault(text_of(key) or "", []).append((value, at.scope))
        for child in ast.iter_child_nodes(node):
            inner = at
            if isinstance(node, ast.IfExp) and child is not node.test:
                inner = at.under(node.test, wanted=child is node.body)
            self._note(child, inner)

    def _bind(self, step: Step, scope: Scope) -> None:
        match step.site.node:
            case ast.Raise():
                self.raises.append(step.site)
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                self._rebound.update(names)
            case ast.ClassDef(body=body):
                for field in body:
                    match field:
                        case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
                            self._fields.setdefault(name, []).append((field.value, scope))
            case node:
                known = step.values[0] if isinstance(node, ast.Assign | ast.AnnAssign) and step.values else None
                for target in step.targets:
                    self._set(target, known, scope)
                    name = own_name(target)
                    if (
                        not isinstance(target, ast.Name)
                        and root_of(target) != "self"
                        and name != own_name(known or target)
                    ):
                        self._sets.setdefault(name, []).append((known, step.site))

    def _set(self, target: ast.expr, value: ast.expr | None, scope: Scope) -> None:
        match target:
            case ast.Name(id=name):
                self._bound.setdefault((id(scope.node), name), []).append(value)
            case ast.Attribute(attr=name) if value is not None and root_of(target) in {"self", "cls"}:
                self._attributes.setdefault(name, []).append((value, scope))
            case ast.Attribute(attr=name) | ast.Subscript(slice=ast.Constant(value=str() as name)):
                self._fields.setdefault(name, []).append((value, scope))
                self._rebound.add(name)
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                for each in elements:
                    self._set(each, None, scope)

    def happens(self, site: Site) -> bool | None:
        """Whether a place is reached; None if that is not known."""
        return self.reach(site)[0]

    def reach(
        self, site: Site, doubts: Callable[[Site], bool] = lambda _at: True, known: dict[int, Reach] | None = None
    ) -> Reach:
        """Whether a place is reached, None if that is not known; the value that decides, or the function.

        ``doubts``: whether a value that is not known may decide, or a function of which no call is; else it holds.
        ``known``: the functions that this question has come to, by the ids of their nodes.
        """
        unseen: Site | None = None
        for part, wanted in (each for test in site.tests for each in _parts(*test)):
            value = self.truth(part, site.scope)
            at = Site(part.left if isinstance(part, ast.Compare) else part, site.scope)
            if value is not None and value is not wanted:
                return False, at
            if value is None and doubts(at):
                unseen = unseen or at
        known, function = {} if known is None else known, site.scope.node
        if isinstance(function, FUNCTIONS) and id(function) not in known:
            at = Site(function, site.scope)
            known[id(function)] = (None, at) if doubts(at) else (True, None)  # if it calls itself, or nothing calls it
            calls = [each for each in self.callers(site.scope) if each.scope.node is not function]
            found = [self.reach(each, doubts, known) for each in calls]
            if any(holds for holds, _ in found) or (not found and function.decorator_list):
                known[id(function)] = True, None  # without a call: a command of click, hydra, typer
            elif found:
                known[id(function)] = next((each for each in found if each[0] is None), found[0])
        holds, decides = known.get(id(function), (True, None))
        return (None if unseen else True, unseen) if holds else (holds, decides)

    def callers(self, scope: Scope) -> tuple[Site, ...]:
        """Where a function is called, or handed to a call."""
        if (chosen := self.only.get(id(scope.node))) is not None:
            return (chosen,)
        name = scope.owner if scope.name in {"__init__", "__post_init__"} else scope.name
        of_name = self.scopes.functions.get(name, ())
        others = {id(each.module) for each in of_name if not each.owner} - {id(scope.module)}  # they call their own
        calls = [*filter(self.is_own, self.calls.get(name, ())), *self.handed.get(name, ())]
        return tuple(c for c in calls if id(c.scope.module) not in others or called(c.node) == name != root_of(c.node))

    def ways(self, site: Site, depth: int = 0) -> Iterator[Mapping[Any, Any]]:
        """What ``only`` may be at a place: each call of the functions around it, and each value of the loops."""
        scope, names = site.scope, [(id(site.scope.node), name) for name, _ in site.each]
        calls = [c for c in self.callers(scope) if c.scope.node is not scope.node] if depth < DEEPEST_CALLS else []
        outer = [{**way, id(scope.node): call} for call in calls for way in self.ways(call, depth + 1)] or [{}]
        for values in itertools.product(*(values for _, values in site.each)):
            yield from ({**way, **dict(zip(names, values, strict=True))} for way in outer[:MOST_WAYS])

    def is_own(self, site: Site) -> bool:
        """Whether a call is one of a function or a class of the project: ``save(…)``, not ``torch.save(…)``.

        ``model.train()`` is none of a function ``train`` that belongs to no class.
        """
        assert isinstance(site.node, ast.Call)
        name, aliases, root = called(site.node), site.scope.module.aliases, root_of(site.node.func)
        origin, of_object = aliases.get(root, "."), isinstance(site.node.func, ast.Attribute) and root not in aliases
        known = any(of.owner or not of_object for of in self.scopes.functions.get(name, ()))
        known = known or name in self.scopes.classes
        return known and (origin.startswith(".") or origin.partition(".")[0] in self._own)

    def truth(self, node: ast.expr, scope: Scope) -> bool | None:
        """Whether a test holds; None if that is not known."""
        value = self.of(node, scope)
        if isinstance(value, str) and UNKNOWN in value:
            return None
        return bool(value)

    def path(self, node: ast.expr, scope: Scope) -> str | None:
        """The path that an expression is, with its unknown parts; None if it is none."""
        value = self.of(node, scope)
        return os.path.normpath(value) if isinstance(value, str) and value else None

    def of(self, node: ast.expr | None, scope: Scope, depth: int = 0) -> Any:
        """The value of an expression; an unknown one is a text with ``UNKNOWN`` in it."""
        if node is None or depth > DEEPEST:
            return f"{UNKNOWN}{UNKNOWN}"
        if isinstance(node, ast.Constant):
            return node.value
        unknown = f"{UNKNOWN}{ast.unparse(node)}{UNKNOWN}"
        match node:
            case ast.Name(id=name):
                return self._name(name, scope, depth, unknown)
            case ast.Attribute(attr=name, value=base):
                if name in _OF_FIRST_RANK:
                    return _OF_FIRST_RANK[name]
                if name == "parent":
                    return _parent_of(str(self.of(base, scope, depth + 1)), unknown)
                set_ = self._attributes.get(name, [])
                if root_of(node) == "self" and len(set_) == 1:
                    return self.of(set_[0][0], set_[0][1], depth + 1)
                if (held := self._of_module(resolved(scope.module, node))) is not None:
                    return self.of(*held, depth + 1)
                return self._member(name, unknown)
            case ast.Subscript(value=base, slice=index):
                if isinstance(constant(index), int) and self.of(base, scope, depth + 1) is SOME:
                    return SOME
                variable = environment_name(scope.module, node)
                name = f"${variable}" if variable is not None else text_of(index) or ""
                return self._member(name, unknown)
            case ast.Call():
                return self._call(node, scope, depth + 1, unknown)
            case ast.BinOp(left=left, op=ast.Div() | ast.Add() as sign, right=right):
                parts = [self.of(each, scope, depth + 1) for each in (left, right)]
                if isinstance(sign, ast.Div):
                    return os.path.join(*map(str, parts))  # noqa: PTH118  no path yet
                return "".join(parts) if all(isinstance(part, str) for part in parts) else unknown
            case ast.BinOp(left=ast.Constant(value=str() as text), op=ast.Mod(), right=right):
                given = right.elts if isinstance(right, ast.Tuple) else [right]
                return _filled(_PERCENT, text, [self.of(each, scope, depth + 1) for each in given], unknown)
            case ast.JoinedStr(values=values):
                parts = [each.value if isinstance(each, ast.FormattedValue) else each for each in values]
                return "".join(str(self.of(each, scope, depth + 1)) for each in parts)
            case ast.UnaryOp(op=ast.Not(), operand=inner):
                said = self.truth(inner, scope)
                return unknown if said is None else not said
            case ast.BoolOp(op=sign, values=values):
                truths = [self.truth(each, scope) for each in values]
                decides = isinstance(sign, ast.Or)
                return decides if decides in truths else unknown if None in truths else not decides
            case ast.IfExp(test=test, body=body, orelse=orelse):
                said = self.truth(test, scope)
                return unknown if said is None else self.of(body if said else orelse, scope, depth + 1)
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return self._compared(self.of(left, scope, depth + 1), op, self.of(right, scope, depth + 1), unknown)
        return constant(node) if isinstance(node, ast.List | ast.Tuple | ast.Set | ast.UnaryOp) else unknown

    def _name(self, name: str, scope: Scope, depth: int, unknown: str) -> Any:
        at: Scope | None = scope
        while at is not None:
            if (id(at.node), name) in self.only:
                return self.of(self.only[id(at.node), name], at, depth + 1)
            is_parameter = isinstance(at.node, FUNCTIONS) and any(p.arg == name for p in parameters(at.node))
            bound = self._bound.get((id(at.node), name), [])
            if is_parameter:  # not where it is only set to another form of itself (``out = Path(out)``)
                own = [[n for n in ast.walk(b) if isinstance(n, ast.Name) and n.id == name] if b else [] for b in bound]
                bound = [each for each, names in zip(bound, own, strict=True) if not names]
            if bound:
                first = bound[0] if len(bound) == 1 and not is_parameter and name not in self._rebound else None
                return unknown if first is None else self.of(first, at, depth + 1)
            if is_parameter:
                return self._parameter(name, at, depth, unknown)
            at = at.parent
        if (variable := self._of_module(scope.module.aliases.get(name, ""))) is not None:
            return self.of(*variable, depth + 1)
        known = {"__name__": "__main__", "__file__": str(scope.module.path), **_OF_FIRST_RANK}
        return known.get(name, unknown)

    def _of_module(self, name: str) -> tuple[ast.expr, Scope] | None:
        """What ``settings.RESUME`` is set to, if one statement of that module sets it."""
        module, _, variable = name.lstrip(".").rpartition(".")
        for path, scope in self._modules.get(module.rpartition(".")[2], ()) if variable not in self._rebound else ():
            if f".{path}".endswith(f".{module}"):
                bound = self._bound.get((id(scope.node), variable), [])
                return (bound[0], scope) if len(bound) == 1 and bound[0] is not None else None
        return None

    def _member(self, name: str, unknown: str) -> Any:
        """A field or a key: an option, or what it is set to wherever it is set, to the same literal."""
        if isinstance(self.options.get(name), bool) and (name, "") not in self._followed:
            self._followed.add((name, ""))
            later = [value for value, site in self._sets.get(name, ()) if self.happens(site) is not False]
            self._followed.discard((name, ""))
            if later:
                return unknown
        set_ = self._fields.get(name, [])
        literal = all(isinstance(value, ast.Constant) for value, _ in set_) and not self.calls.keys() & _MERGES
        if name in self.options or not set_ or not literal or len({ast.dump(v) for v, _ in set_ if v}) > 1:
            return self._option(name, unknown)
        return constant(set_[0][0])

    def written(self, node: ast.expr, scope: Scope) -> ast.expr:
        """What a variable of this function is set to at its only place; any other expression as it is."""
        bound = self._bound.get((id(scope.node), node.id), []) if isinstance(node, ast.Name) else []
        return bound[0] if len(bound) == 1 and bound[0] is not None else node

    def asked_for(self, node: ast.expr, scope: Scope) -> ast.expr:
        """``config.get("resume")`` for a variable that is set to that first; any other value as it is."""
        at: Scope | None = scope
        while isinstance(node, ast.Name) and at is not None:
            if bound := self._bound.get((id(at.node), node.id)):
                held = bound[0]
                asks = isinstance(held, ast.Call | ast.Subscript) and words.RESUME.search(name_of(held))
                return held if asks and held is not None else node
            at = at.parent
        return node

    def set_at(self, node: ast.expr, scope: Scope) -> tuple[str, int]:
        """The file and line that set a variable, a parameter or a field; else those of the expression itself."""
        name = last(dotted(node)) if not isinstance(node, ast.Subscript) else text_of(node.slice) or ""
        at: Scope | None = scope
        while isinstance(node, ast.Name) and at is not None:
            if bound := self._bound.get((id(at.node), name)):
                return at.module.shown, getattr(bound[0] or node, "lineno", 0)
            if isinstance(at.node, FUNCTIONS) and any(p.arg == name for p in parameters(at.node)):
                return at.module.shown, at.node.lineno
            at = at.parent
        fields = () if isinstance(node, ast.Name) else self._fields.get(name, ())
        held = next((each for each in fields if each[0] is not None), (node, scope))
        value, where = self._of_module(resolved(scope.module, node)) or held
        return where.module.shown, getattr(value, "lineno", 0)

    def _parameter(self, name: str, scope: Scope, depth: int, unknown: str) -> Any:
        assert isinstance(scope.node, FUNCTIONS)
        if (scope.name, name) in self.of_parameters:
            return self._option(name, unknown)
        names = [p.arg for p in parameters(scope.node) if p.arg not in {"self", "cls"}]
        key = (id(scope.node), name)
        if key in self._followed:
            return unknown  # it calls itself
        self._followed.add(key)
        try:
            found: list[Any] = []
            for site in self.callers(scope):
                call = site.node
                assert isinstance(call, ast.Call)
                if self.handed.get(scope.name) and site in self.handed[scope.name]:
                    return unknown  # who calls it then gives it what is not seen
                value = next((k.value for k in call.keywords if k.arg == name), None)
                if value is None and name in names and names.index(name) < len(call.args):
                    value = call.args[names.index(name)]
                value = default_of(scope.node, name) if value is None else value
                found.append(self.of(value, site.scope, depth + 1))
                if found[-1] != found[0]:
                    return unknown
            return found[0] if found else unknown
        finally:
            self._followed.discard(key)

    def _option(self, name: str, unknown: str) -> Any:
        if name not in self.options:
            return unknown
        self.asked.add(name)
        return self.options[name]

    def _call(self, node: ast.Call, scope: Scope, depth: int, unknown: str) -> Any:
        name = called(node)
        base = node.func.value if isinstance(node.func, ast.Attribute) else None
        variable = environment_name(scope.module, node)
        if variable is not None:
            return self._option(f"${variable}", unknown)
        if name in {"get", "pop", "getattr"} and node.args:
            key = text_of(node.args[1 if name == "getattr" and len(node.args) > 1 else 0]) or ""
            return self._option(key, unknown)
        if name in words.LOOKS or name in _LISTS:
            asked = set(self.asked)
            of_path = base is not None and root_of(base) not in scope.module.aliases
            named = [base, *(node.args if "glob" in name else ())] if of_path and base is not None else node.args[:1]
            of = os.path.join(*(str(self.of(each, scope, depth)) for each in named)) if named else ""  # noqa: PTH118
            self.asked = asked  # which folder it is decides nothing
            return (SOME if name in _LISTS else True) if of and self._is_there(of) else unknown
        if name in {"bool", "len", "any", "list", "sorted", "max", "min"} and len(node.args) == 1:
            held = self.of(node.args[0], scope, depth)
            return held if held is SOME or name not in {"len", "max", "min"} else unknown
        if name in {"int", "float"} and len(node.args) == 1:
            return _number(self.of(node.args[0], scope, depth), unknown)
        if name == "format" and isinstance(base, ast.Constant) and isinstance(base.value, str) and not node.keywords:
            return _filled(_BRACES, base.value, [self.of(each, scope, depth) for each in node.args], unknown)
        if name == "dirname" and node.args:
            return _parent_of(str(self.of(node.args[0], scope, depth)), unknown)
        if (own := self.sites.get(id(node))) is not None and self.is_own(own):
            return self._returned(name, depth, unknown)
        parts: list[ast.expr] = []
        if name == "open":  # the file is meant by its path
            parts = [base] if base is not None and root_of(base) not in scope.module.aliases else node.args[:1]
        elif name in {"join", "joinpath"}:
            parts = [*([base] if name == "joinpath" and base is not None else []), *node.args]
        elif name in SAME_PATH:
            parts = node.args or ([base] if base is not None else [])
        held = [unknown if (part := self.of(each, scope, depth)) is None else str(part) for each in parts]
        return os.path.join(*held) if held else unknown  # noqa: PTH118  no path yet

    def _is_there(self, path: str) -> bool:
        """Whether a folder, a file or a pattern is that, or around it, or whatever was saved is at it."""
        path, inside = os.path.normpath(path), [each for each in self.saved if each.startswith(f"{self.there}/")]
        if not self.there or path in {self.there, f"{self.there}/*", f"{self.there}/**"}:
            return bool(self.there)
        if self.there.startswith(f"{path}/"):
            return True
        # unknown parts of any length: "ck_?.pt" and "ck_[0-4].pt" may match none of them
        names = [UNKNOWN_PART.sub(part, each) for each in inside for part in ("0", "98765")]
        return (
            UNKNOWN not in path.removeprefix(self.there)
            and bool(names)
            and all(fnmatch.fnmatchcase(name, UNKNOWN_PART.sub("0", path)) for name in names)
        )

    def _returned(self, name: str, depth: int, unknown: str) -> Any:
        """What a function of the project returns, if all that it may return is the same."""
        of = self.scopes.functions.get(name, [])
        key = (id(of[0].node), "") if len(of) == 1 else None
        if key is None or key in self._followed or not _returns_plainly(of[0].node):
            return unknown
        self._followed.add(key)
        try:
            found: list[Any] = []
            for site in (step.site for step in self.steps[key[0]] if isinstance(step.site.node, ast.Return)):
                assert isinstance(site.node, ast.Return)
                holds = [t if (t := self.truth(test, of[0])) is None else t is wanted for test, wanted in site.tests]
                if False not in holds:
                    found.append(None if site.node.value is None else self.of(site.node.value, of[0], depth + 1))
                if all(holds):
                    break
            else:
                found.append(None)
            same = found[0] is SOME or not isinstance(found[0], str) or UNKNOWN not in found[0]
            return found[0] if same and all(each is found[0] or each == found[0] for each in found) else unknown
        finally:
            self._followed.discard(key)

    def _compared(self, left: Any, op: ast.cmpop, right: Any, unknown: str) -> Any:
        if any(isinstance(each, str) and UNKNOWN in each for each in (left, right)):
            return unknown
        if left is SOME or right is SOME:
            return left.compared(op, right, unknown) if left is SOME else unknown
        if (isinstance(left, bool) and isinstance(right, str)) or (isinstance(right, bool) and isinstance(left, str)):
            return unknown  # "false" of an option is False to some parsers, and a text to others
        if is_number(left) or is_number(right):  # a word of the command is a text: `--clean 1`
            left, right = _number(left, left), _number(right, right)
        if is_number(left) and is_number(right) and type(op) in _ORDERS:
            return _ORDERS[type(op)](left, right)
        match op:
            case ast.Eq() | ast.Is():
                return left == right or (right in ("none", "None", "") and left is None)
            case ast.NotEq() | ast.IsNot():
                return left != right
            case ast.In() if isinstance(right, list | tuple | set):
                return left in right
            case ast.NotIn() if isinstance(right, list | tuple | set):
                return left not in right
        return unknown


def _returns_plainly(function: ast.AST) -> bool:
    """Whether tests alone decide which ``return`` is reached: no exception, loop, manager, match or decorator."""
    if not isinstance(function, ast.FunctionDef) or function.decorator_list:
        return False
    decides = (ast.Try, ast.TryStar, ast.For, ast.While, ast.With, ast.Match)
    blocks = (node for node in ast.walk(function) if isinstance(node, decides))
    inside = (node for block in blocks for node in ast.walk(block))
    return not any(isinstance(n, ast.Return) for n in inside) and not any(
        isinstance(n, ast.Yield | ast.YieldFrom) for n in ast.walk(function)
    )


_PERCENT, _BRACES = re.compile(r"%[-+ #0]*\d*(?:\.\d+)?[a-zA-Z]"), re.compile(r"\{(?::[^{}]*)?\}")


def _filled(place: re.Pattern[str], text: str, values: Sequence[Any], unknown: str) -> str:
    """``"out/%s" % name`` and ``"out/{}".format(name)``; what a number looks like there is not known."""
    parts = place.split(text)
    if len(parts) != len(values) + 1 or "%%" in text or any(is_number(value) for value in values):
        return unknown
    return parts[0] + "".join(f"{value}{part}" for value, part in zip(values, parts[1:], strict=True))


def _parent_of(path: str, unknown: str) -> str:
    """The folder of a path; ``unknown`` if that cannot be told."""
    masked = UNKNOWN_PART.sub(lambda part: part[0].replace("/", "\x01"), path.rstrip("/"))
    folder = os.path.dirname(masked).replace("\x01", "/")  # noqa: PTH120  no path yet
    return folder or (unknown if UNKNOWN in path else "")


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number(value: Any, otherwise: Any) -> Any:
    """A number, also of a text that is one."""
    if isinstance(value, int | float):
        return value
    try:
        return float(value) if isinstance(value, str) else otherwise
    except ValueError:
        return otherwise


_ORDERS: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Lt: operator.lt, ast.LtE: operator.le,
}  # fmt: skip


def _parts(test: ast.expr, wanted: bool) -> Iterator[tuple[ast.expr, bool]]:
    """The tests that must all hold, or all fail, if this one is to be as wanted."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            yield from _parts(inner, not wanted)
        case ast.BoolOp(op=op, values=values) if isinstance(op, ast.And) is wanted:
            for each in values:
                yield from _parts(each, wanted)
        case _:
            yield test, wanted


def set_options(declared: tuple[Option, ...], args: tuple[str, ...], environment: Mapping[str, str]) -> dict[str, Any]:
    """What each option is set to by the trainer's words and environment, by its ``dest``; else its default."""
    found: dict[str, Any] = {}
    short, placed = beginnings(declared, args), _placed(declared, args)
    for option in declared:
        value = value_given(option, args, environment, short)
        if option.kind == "positional" and not option.dest.startswith("$argv"):
            value = placed.get(option.dest)
        if value is not None:
            found[option.dest] = value
        elif option.required or option.kind == "positional":
            found.setdefault(option.dest, f"{UNKNOWN}{option.name}{UNKNOWN}")
        else:
            other = found.get(option.dest)  # data.clean and train.clean are both read as `clean`
            if option.kind == "override" and isinstance(option.default, bool) and other is (not option.default):
                found[option.dest] = f"{UNKNOWN}{option.dest}{UNKNOWN}"
            text = option.default.lower() if option.takes == "truth" and isinstance(option.default, str) else ""
            found.setdefault(option.dest, text == "true" if text in {"true", "false"} else option.default)
    return found


def all_names(option: Option, short: Mapping[str, str] = MappingProxyType({})) -> set[str]:
    begun = (word for word, name in short.items() if name == option.name)
    return {option.name, option.name.lstrip("+~"), option.negated or option.name, *option.aliases, *begun}


def beginnings(declared: Iterable[Option], args: Iterable[str]) -> dict[str, str]:
    """The words that are the beginning of one option (argparse takes ``--over`` for ``--overwrite``): its name."""
    names = {name: option.name for option in declared for name in all_names(option)}
    given = {word.partition("=")[0] for word in args if re.match(r"--\w", word)} - names.keys()
    begun = {word: {of for name, of in names.items() if name.startswith(word)} for word in given}
    return {word: next(iter(of)) for word, of in begun.items() if len(of) == 1}


def _placed(declared: Iterable[Option], args: Sequence[str]) -> dict[str, str]:
    """What the positional arguments are set to, by their ``dest``; nothing if it cannot be told which word is whose."""
    options = list(declared)
    by_name = {name: option for option in options for name in all_names(option) if option.kind != "positional"}
    places = [o.dest for o in options if o.kind == "positional" and not o.dest.startswith("$argv")]
    plain, value_of = list[str](), ""
    for word in args:
        if word.startswith("-") and not re.match(r"-[\d.]", word):
            option = by_name.get(word.partition("=")[0])
            value_of = "" if "=" in word or (option and option.takes == "flag") else "option" if option else "unknown"
        elif value_of == "unknown":
            return {}
        elif value_of:
            value_of = ""
        else:
            plain.append(word)
    return dict(zip(places, plain, strict=False)) if len(plain) <= len(places) else {}


def word_given(names: Collection[str], args: Sequence[str], *, flag: bool = False) -> tuple[str, str | None] | None:
    """The last of these words in a command, without its value, and its value; None = no value."""
    found: tuple[str, str | None] | None = None
    for at, word in enumerate(args):
        name, equals, value = word.partition("=")
        if name in names or name.lstrip("+~") in names:
            following = args[at + 1] if not flag and at + 1 < len(args) else "-"
            found = name, value if equals else None if following.startswith("-") else following
    return found


def value_given(
    option: Option, args: Sequence[str], environment: Mapping[str, str], short: Mapping[str, str] = MappingProxyType({})
) -> Any:
    """The value that the words give an option, None if they give none. One that means none is "".

    ``short``: as of ``beginnings``.
    """
    if option.kind == "environment":
        value = environment.get(option.dest.removeprefix("$"))
        return f"{UNKNOWN}{option.name}{UNKNOWN}" if value is not None and "$" in value else value
    if option.kind == "positional":
        place, plain = option.dest.removeprefix("$argv"), [word for word in args if not word.startswith("-")]
        return next(iter(plain[int(place) - 1 if place.isdigit() else 0 :]), None)
    found = word_given(all_names(option, short), args, flag=option.takes == "flag")
    if found is None or found[0] == option.negated:
        return None if found is None else False
    text, truth = found[1], option.takes in {"truth", "flag"} or isinstance(option.default, bool)
    if text is None or option.any_text:
        return text != ""
    if truth or text.lower() in {"true", "false"}:
        return text.lower() not in _NO
    return "" if text.lower() in _NO - {"0"} else text


def name_of(node: ast.expr) -> str:
    """The last name of a value, or the key in ``config.get("resume")``; "" for another expression."""
    match node:
        case ast.Call(func=ast.Attribute(attr="get"), args=[ast.Constant(value=str() as key), *_]):
            return key
    return own_name(node)
