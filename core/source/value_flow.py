"""Where the values of a trainer's options go: which of them reach a call that restores a training.

No value is computed. Names stand for sets of labels: an option's own value, a path made of it, what was found or
loaded by it. Assignments, attributes, arguments and returned values pass labels on, until nothing changes; the tests
around a call say which options it depends on. Names are taken together over the whole project (``self.resume`` of one
class is that of another), so more is found than there is: an error on the side that a proof catches (a resume is
checked by its first steps), never one that starts anything by itself.
"""

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from . import words
from .options import Option, argv_index, environment_name
from .project_modules import Module, Project
from .syntax import FUNCTIONS, Function, constant, dotted, ends, keyword, last, parameters, root_of, text_of

PASSES = 6
"""Rounds until nothing changes; each carries a label over one more call."""
FEW_OPTIONS = 40
"""A trainer with more has options of all kinds, and only names tell which of them are about a resume."""
MOST_SAME_NAME = 4
"""Functions of one name; more say nothing about which is meant."""


_FIRST_TEXT = -1_000_000
_NAME_OF_A_FILE = re.compile(r"[\w.\-~]*[./][\w.\-/~]*")
"""Texts that may be the name of a file: two uses of the same text may be the same file."""


class Label(NamedTuple):
    """``of``: number of the option; negative: of a text in the source, or of a load or search that no option feeds.

    ``how``: "path" the value; "inside" a path below it; "found" found in it; "state" loaded from it; "when" chosen by
    it.
    """

    of: int
    how: str
    value: str = ""


class Guard(NamedTuple):
    """A test around a call: of which option, whether it must be on, and the word that is compared."""

    of: int
    on: bool
    value: str = ""


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a call does. ``receiver``: what it is called on. ``text``: constants among its arguments.

    ``kind``: "load"; "whole" restores a training by itself; "part" gives loaded values to a part of the training;
    "count" sets a counter from them; "save"; "look" asks whether it exists; "find" looks for the newest.
    """

    kind: str
    labels: frozenset[Label]
    guards: frozenset[Guard]
    module: str
    line: int
    called: str
    receiver: str = ""
    text: tuple[str, ...] = ()
    load: int = 0


class _Scope(msgspec.Struct):
    name: str
    module: Module
    node: Function | ast.Lambda | ast.Module
    parent: "_Scope | None" = None
    owner: str = ""
    """The class that it is in."""


Labels = frozenset[Label]
NOTHING: Labels = frozenset()


class ValueFlow:
    """The flow through one project. ``events``: all that was seen; ``read``: destinations that the code reads."""

    def __init__(self, project: Project, options: Sequence[Option]) -> None:
        self.options = options
        self.events: dict[tuple[str, int, int, str], Event] = {}
        self.read: set[str] = set()
        self._project = project
        self._variables: dict[tuple[int, str], Labels] = {}
        self._attributes: dict[str, Labels] = {}
        self._returned: dict[int, Labels] = {}
        self._called_under: dict[int, frozenset[Guard]] = {}
        self._unguarded: set[int] = set()
        self._functions: dict[str, list[_Scope]] = {}
        self._classes: dict[str, list[_Scope]] = {}
        self._scopes: list[_Scope] = []
        self._loads: dict[tuple[str, int, int], int] = {}
        self._texts: dict[str, int] = {}
        self._written: set[int] = set()
        self._changed = False
        self._seeds: dict[str, Labels] = {}
        self._environment: dict[str, Labels] = {}
        self._telling = [_tells(option, len(options)) for option in options]
        self._collect()
        self._scopes = self._relevant()
        self._seed()
        self._run()

    # what there is

    def _collect(self) -> None:
        for module in self._project.modules:
            top = _Scope("<module>", module, module.tree)
            self._scopes.append(top)
            self._collect_in(module.tree, top, "")

    def _collect_in(self, node: ast.AST, parent: _Scope, owner: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, FUNCTIONS):
                scope = _Scope(child.name, parent.module, child, parent, owner)
                self._scopes.append(scope)
                self._functions.setdefault(child.name, []).append(scope)
                if owner and child.name in {"__init__", "__call__", "__post_init__"}:
                    self._classes.setdefault(owner, []).append(scope)
                self._collect_in(child, scope, "")
            elif isinstance(child, ast.ClassDef):
                self._classes.setdefault(child.name, [])
                self._collect_in(child, parent, child.name)
            else:
                self._collect_in(child, parent, owner)

    def _relevant(self) -> list[_Scope]:
        """Functions that load or restore something, those that call them, and those that look for files for them."""
        facts = [_facts(scope) for scope in self._scopes]
        names = [{scope.name, scope.owner} if scope.name == "__init__" else {scope.name} for scope in self._scopes]
        chosen = {n for n, fact in enumerate(facts) if fact.loads}
        while True:
            wanted = {name for n in chosen for name in names[n] if len(self._functions.get(name, ())) <= MOST_SAME_NAME}
            wanted -= {"", "<module>", "forward", "__init__"}
            more = {n for n, fact in enumerate(facts) if n not in chosen and fact.called & wanted}
            if not more:
                break
            chosen |= more
        called = {name for n in chosen for name in facts[n].called}
        chosen |= {n for n, fact in enumerate(facts) if (fact.looks and names[n] & called) or fact.sets}
        return [scope for n, scope in enumerate(self._scopes) if n in chosen or scope.name == "<module>"]

    def _seed(self) -> None:
        spread = any(k.arg is None for m in self._project.modules for c in m.calls for k in c.keywords)
        for number, option in enumerate(self.options):
            label = frozenset({Label(number, "path")})
            if option.kind == "environment" or option.dest.startswith("$argv"):
                self._environment[option.dest] = self._environment.get(option.dest, NOTHING) | label
                continue
            self._seeds[option.dest] = self._seeds.get(option.dest, NOTHING) | label
            for scope in self._scopes:
                if not isinstance(scope.node, FUNCTIONS):
                    if option.parameter == "<module>" and scope.module is self._project.modules[0]:
                        self._add_variable(scope, option.dest, label)
                    continue
                named = scope.name == option.parameter or (spread and not option.parameter)
                if named and any(p.arg == option.dest for p in parameters(scope.node)):
                    self._add_variable(scope, option.dest, label)

    def _run(self) -> None:
        for _ in range(PASSES):
            self._changed = False
            for scope in self._scopes:
                if isinstance(scope.node, ast.Lambda):
                    continue
                guards = (
                    self._called_under.get(id(scope.node), frozenset())
                    if id(scope.node) not in self._unguarded
                    else frozenset()
                )
                self._block(scope.node.body, scope, guards)
            if not self._changed:
                break

    # statements

    def _block(self, body: Iterable[ast.stmt], scope: _Scope, guards: frozenset[Guard]) -> None:
        for statement in body:
            guards = self._statement(statement, scope, guards)

    def _statement(  # noqa: PLR0915  one case for each kind
        self, node: ast.stmt, scope: _Scope, guards: frozenset[Guard]
    ) -> frozenset[Guard]:
        """Returns the guards of what follows."""
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                pass  # a scope of its own
            case ast.ClassDef(body=body):
                self._block([s for s in body if not isinstance(s, FUNCTIONS)], scope, guards)
            case ast.Assign(targets=targets, value=value):
                labels = self._value(value, scope, guards)
                for target in targets:
                    self._bind(target, value, labels, scope, guards)
            case ast.AnnAssign(target=target, value=value) if value is not None:
                self._bind(target, value, self._value(value, scope, guards), scope, guards)
            case ast.AugAssign(target=target, value=value):
                self._bind(target, value, self._value(value, scope, guards), scope, guards)
            case ast.Return(value=value) if value is not None:
                labels = self._value(value, scope, guards) | self._chosen(guards, value)
                before = self._returned.get(id(scope.node), NOTHING)
                self._returned[id(scope.node)] = before | labels
                self._changed |= not labels <= before
            case ast.If(test=test, body=body, orelse=orelse):
                self._value(test, scope, guards)
                yes, no = self._tests(test, scope)
                self._block(body, scope, guards | yes)
                self._block(orelse, scope, guards | no)
                if ends(body) and not orelse:
                    return guards | no
                if orelse and ends(orelse):
                    return guards | yes
            case ast.While(test=test, body=body, orelse=orelse):
                self._value(test, scope, guards)
                if isinstance(test, ast.Compare):
                    self._note_count(test, scope, guards)
                self._block([*body, *orelse], scope, guards)
            case (
                ast.For(target=target, iter=values, body=body, orelse=orelse)
                | ast.AsyncFor(target=target, iter=values, body=body, orelse=orelse)
            ):
                self._bind(target, values, self._value(values, scope, guards), scope, guards)
                self._block([*body, *orelse], scope, guards)
            case ast.With(items=items, body=body) | ast.AsyncWith(items=items, body=body):
                for item in items:
                    labels = self._value(item.context_expr, scope, guards)
                    if item.optional_vars is not None:
                        self._bind(item.optional_vars, item.context_expr, labels, scope, guards)
                self._block(body, scope, guards)
            case ast.Try(body=body, handlers=handlers, orelse=orelse, finalbody=final):
                self._block(body, scope, guards)
                for handler in handlers:
                    self._block(handler.body, scope, guards)
                self._block([*orelse, *final], scope, guards)
            case ast.Match(subject=subject, cases=cases):
                of = self._value(subject, scope, guards)
                for case in cases:
                    word = constant(case.pattern.value) if isinstance(case.pattern, ast.MatchValue) else None
                    tests = {
                        Guard(each.of, on=True, value=str(word)) for each in of if each.of >= 0 and word is not None
                    }
                    self._block(case.body, scope, guards | tests)
            case _:
                for child in ast.iter_child_nodes(node):
                    if isinstance(child, ast.expr):
                        self._value(child, scope, guards)
                    elif isinstance(child, ast.stmt):
                        self._block([child], scope, guards)
        return guards

    def _bind(self, target: ast.expr, value: ast.expr, labels: Labels, scope: _Scope, guards: frozenset[Guard]) -> None:
        labels |= self._chosen(guards, value)
        match target:
            case ast.Name(id=name):
                self._add_variable(scope, name, labels)
                if any(each.how == "state" for each in labels) and words.STEPS.search(name):
                    self._note("count", labels, guards, target, scope, name)
            case ast.Attribute(attr=name):
                self._add_attribute(name, labels)
                if any(each.how == "state" for each in labels) and words.STEPS.search(name):
                    self._note("count", labels, guards, target, scope, name)
            case ast.Subscript(slice=index):
                key = text_of(index)
                if key is not None:
                    self._add_attribute(key, labels)
                elif isinstance(target.value, ast.Name):
                    self._add_variable(scope, target.value.id, labels)
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                values = (
                    value.elts if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(elements) else None
                )
                for number, element in enumerate(elements):
                    each = labels if values is None else self._value(values[number], scope, guards)
                    self._bind(element, value if values is None else values[number], each, scope, guards)
            case ast.Starred(value=inner):
                self._bind(inner, value, labels, scope, guards)
            case _:
                pass

    def _chosen(self, guards: frozenset[Guard], value: ast.expr) -> Labels:
        """What is set only if an option is given is chosen by it; to set it to nothing or a number chooses nothing."""
        if (isinstance(value, ast.Constant) and not isinstance(value.value, str)) or not guards:
            return NOTHING
        return frozenset(Label(g.of, "when", g.value if g.on else "-") for g in guards if self._telling[g.of])

    def _add_variable(self, scope: _Scope, name: str, labels: Labels) -> None:
        if not labels:
            return
        key = (id(scope.node), name)
        before = self._variables.get(key, NOTHING)
        if not labels <= before:
            self._variables[key] = before | labels
            self._changed = True

    def _add_attribute(self, name: str, labels: Labels) -> None:
        if not labels:
            return
        before = self._attributes.get(name, NOTHING)
        if not labels <= before:
            self._attributes[name] = before | labels
            self._changed = True

    # expressions

    def _value(self, node: ast.expr | None, scope: _Scope, guards: frozenset[Guard]) -> Labels:
        match node:
            case ast.Constant(value=str() as words_) if _NAME_OF_A_FILE.fullmatch(words_):
                of = self._texts.setdefault(words_, _FIRST_TEXT - len(self._texts))
                return frozenset({Label(of, "path")})
            case None | ast.Constant():
                return NOTHING
            case ast.Name(id=name):
                return self._variable(name, scope)
            case ast.Attribute(value=base, attr=name):
                if root_of(node) in scope.module.aliases and not self._variable(root_of(node), scope):
                    return NOTHING
                return self._key(name) | self._value(base, scope, guards)
            case ast.Subscript(value=base, slice=index):
                if (variable := environment_name(scope.module, node)) is not None:
                    return self._environment.get(f"${variable}", NOTHING)
                if (number := argv_index(scope.module, node)) is not None:
                    return self._environment.get(f"$argv{number}", NOTHING)
                text = text_of(index)
                found = self._value(base, scope, guards)
                return found | (self._value(index, scope, guards) if text is None else self._key(text))
            case ast.Call():
                return self._call(node, scope, guards)
            case ast.Compare():
                for compared in (node.left, *node.comparators):
                    self._value(compared, scope, guards)
                return NOTHING
            case ast.IfExp(test=test, body=body, orelse=orelse):
                self._value(test, scope, guards)
                yes, no = self._tests(test, scope)
                found = self._value(body, scope, guards | yes) | self._chosen(yes, body)
                return found | self._value(orelse, scope, guards | no) | self._chosen(no, orelse)
            case ast.NamedExpr(target=target, value=value):
                labels = self._value(value, scope, guards)
                self._bind(target, value, labels, scope, guards)
                return labels
            case ast.Lambda(body=body):
                return self._value(body, scope, guards)
            case ast.BinOp(left=left, right=right):
                found = self._value(left, scope, guards) | self._value(right, scope, guards)
                return _below(found) if isinstance(node.op, ast.Div) else found
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                found = NOTHING
                for part in node.generators:
                    inner = self._value(part.iter, scope, guards)
                    self._bind(part.target, part.iter, inner, scope, guards)
                    found |= inner
                return found
            case _:
                found = NOTHING
                for child in ast.iter_child_nodes(node):
                    if isinstance(child, ast.expr):
                        found |= self._value(child, scope, guards)
                return found

    def _variable(self, name: str, scope: _Scope) -> Labels:
        found: Labels = NOTHING
        at: _Scope | None = scope
        while at is not None:
            found |= self._variables.get((id(at.node), name), NOTHING)
            at = at.parent
        return found

    def _key(self, name: str) -> Labels:
        if name in self._seeds:
            self.read.add(name)
        return self._seeds.get(name, NOTHING) | self._attributes.get(name, NOTHING)

    def _call(self, node: ast.Call, scope: _Scope, guards: frozenset[Guard]) -> Labels:
        called = dotted(node.func)
        first, dot, rest = called.partition(".")
        called = f"{scope.module.aliases.get(first, first)}{dot}{rest}".lstrip(".")
        name = last(called)
        if (variable := environment_name(scope.module, node)) is not None:
            return self._environment.get(f"${variable}", NOTHING)
        base = self._value(node.func.value, scope, guards) if isinstance(node.func, ast.Attribute) else NOTHING
        given = [
            self._value(each.value if isinstance(each, ast.Starred) else each, scope, guards) for each in node.args
        ]
        named = {k.arg: self._value(k.value, scope, guards) for k in node.keywords}
        inside = base.union(*given, *named.values())
        if name in {"get", "pop", "getattr", "setdefault"} and node.args:
            text = text_of(node.args[1] if name == "getattr" and len(node.args) > 1 else node.args[0])
            return inside | (self._key(text) if text is not None else NOTHING)
        targets = self._targets(node, name, scope)
        for target in targets:
            self._pass_on(target, given, named, guards, scope)
        result = self._effects(node, scope, guards, called, inside, base, named, given, known=bool(targets))
        for target in targets:
            if target.name != "__init__":
                inside |= self._returned.get(id(target.node), NOTHING)
        if targets and targets[0].name != "__init__":
            inside = result.union(*(self._returned.get(id(t.node), NOTHING) for t in targets))
            if words.FINDS.search(name):
                inside |= frozenset(
                    Label(each.of, "found", each.value) for g in (*given, *named.values()) for each in g
                )
            return inside
        if any(each.how == "state" for each in result):
            return result  # what was loaded, no longer the path
        if name in words.LOOKS or name in {"isinstance", "len", "print", "hasattr"}:
            return NOTHING
        if words.FINDS.search(name):
            inside |= self._own_load(node, scope)
            return result | frozenset(
                Label(each.of, "found" if each.how in {"path", "inside"} else each.how, each.value) for each in inside
            )
        if name == "join" and "path" in called:
            rest_ = NOTHING.union(*given[1:]) if len(given) > 1 else NOTHING
            return result | _below(given[0] if given else NOTHING) | rest_
        if name == "joinpath":
            return result | _below(inside)
        if name[:1].isupper() or name in self._classes:  # what is made of loaded values is not them
            return frozenset(each for each in inside if each.how != "state") | result
        return inside | result

    def _targets(self, node: ast.Call, name: str, scope: _Scope) -> list[_Scope]:
        if name in self._classes and not isinstance(node.func, ast.Attribute | ast.Call):
            return self._classes[name]
        found = self._functions.get(name, [])
        if len(found) > MOST_SAME_NAME:
            return []
        if isinstance(node.func, ast.Attribute) and root_of(node.func) in scope.module.aliases:
            origin = scope.module.aliases[root_of(node.func)]
            stem = last(origin)
            near = [f for f in found if stem in {f.module.path.stem, f.module.path.parent.name}]
            if not near:
                return [] if origin.partition(".")[0] in _LIBRARIES else found
            return near
        return [f for f in found if not (f.owner and isinstance(node.func, ast.Name) and f.owner != scope.owner)]

    def _pass_on(
        self,
        target: _Scope,
        given: list[Labels],
        named: dict[str | None, Labels],
        guards: frozenset[Guard],
        scope: _Scope,
    ) -> None:
        assert isinstance(target.node, FUNCTIONS)
        names = [p.arg for p in parameters(target.node)]
        if names[:1] in (["self"], ["cls"]):
            names = names[1:]
        for name, labels in zip(names, given, strict=False):
            self._add_variable(target, name, labels)
        for key, labels in named.items():
            if key in names:
                self._add_variable(target, key, labels)
        if guards:
            before = self._called_under.get(id(target.node), frozenset())
            self._called_under[id(target.node)] = before | guards
            self._changed |= not guards <= before
        elif id(target.node) not in self._unguarded and scope.name != target.name:
            self._unguarded.add(id(target.node))
            self._changed = True

    def _effects(  # noqa: PLR0917
        self,
        node: ast.Call,
        scope: _Scope,
        guards: frozenset[Guard],
        called: str,
        inside: Labels,
        base: Labels,
        named: dict[str | None, Labels],
        given: list[Labels],
        *,
        known: bool,
    ) -> Labels:
        """Note what the call does. Returns what its result has beside what went in."""
        name = last(called)
        receiver = called.rpartition(".")[0]
        places = NOTHING.union(*(value for key, value in named.items() if key not in _NO_PLACES))
        places = places.union(
            *(each for arg, each in zip(node.args, given, strict=True) if "device" not in ast.unparse(arg))
        )
        paths = frozenset(each for each in places if each.how in {"path", "inside", "found", "when"})
        state = frozenset(each for each in inside - base if each.how == "state")
        if words.TRACKERS.search(called):
            return NOTHING
        for key, labels in named.items():
            if key is None or not words.WHOLE_KEYWORDS.search(key) or known:
                continue
            value = keyword(node, key)
            text = constant(value)
            if labels:
                self._note("count" if key == "initial_epoch" else "whole", labels, guards, node, scope, called, key)
            elif text is True or (isinstance(text, str) and text.lower() in words.NEWEST):
                self._note("whole", self._own_load(node, scope), guards, node, scope, called, key)
        if name in words.LOOKS:
            self._note_if(paths, "look", guards, node, scope, called)
            return NOTHING
        if name == "open":
            return self._opened(node, scope, guards, called, paths | (base if called != "open" else NOTHING))
        if words.GOES_ON.search(name) and not known:
            self._note("whole", paths | self._own_load(node, scope), guards, node, scope, called, "resume")
            return NOTHING
        if words.FINDS.search(name):
            self._note("find", paths, guards, node, scope, called)
        if name == "range" and state:
            self._note("count", state, guards, node, scope, called)
        if name in _TAKES_STATE:
            self._note_if(state, "part", guards, node, scope, called, receiver)
            return NOTHING
        if name in _MOVES and given and len(given) <= 2:
            self._note_if(_places(given[-1]), "save", guards, node, scope, called)
            return NOTHING
        if words.SAVES.search(name) and not words.LOADS.search(name):
            first = given[0] if len(given) == 1 or called.startswith(("np.", "numpy.")) else NOTHING.union(*given[1:])
            written = (first | base if name in _WRITES_SELF else first).union(*named.values())
            if not known:
                self._note_if(_places(written), "save", guards, node, scope, called)
            return NOTHING
        if name in _READS:
            paths |= frozenset(each for each in base if each.how in {"path", "inside", "found", "when"})
        elif not (words.LOADS.search(name) or words.WHOLE.search(name)):
            if known:
                self._note_if(state, "hand", guards, node, scope, called)
            return NOTHING
        if state and not paths:
            self._note("part", state, guards, node, scope, called, receiver)
            return NOTHING
        meant = any(each.of in self._written or self._is_about_resume(each.of) for each in paths)
        data = name in _DATA_LOADS or name in _READS or _is_config(called)
        if known or (data and not meant):
            return NOTHING  # what a function of the project does is seen inside it
        of = paths or self._own_load(node, scope)
        whole = bool(words.WHOLE.search(name)) and not name.startswith("load_model")
        self._note("whole" if whole else "load", of, guards, node, scope, called, receiver)
        return frozenset(Label(each.of, "state") for each in of if each.how != "when") or frozenset(
            Label(each.of, "state") for each in of
        )

    def _opened(self, node: ast.Call, scope: _Scope, guards: frozenset[Guard], called: str, paths: Labels) -> Labels:
        """A file that is opened: for writing it is saved, else what is read from it is loaded."""
        mode = text_of(keyword(node, "mode") or next((a for a in reversed(node.args) if text_of(a)), None)) or "r"
        writes = len(mode) <= 4 and bool(set(mode) & set("wax"))
        self._note_if(_places(paths), "save" if writes else "look", guards, node, scope, called)
        return paths

    def _is_about_resume(self, of: int) -> bool:
        if of < 0:
            return False
        option = self.options[of]
        said = f"{option.name} {option.help}"
        return bool(words.RESUME.search(said) or words.CHECKPOINT.search(option.name))

    def _note_if(  # noqa: PLR0917
        self,
        labels: Labels,
        kind: str,
        guards: frozenset[Guard],
        node: ast.AST,
        scope: _Scope,
        called: str,
        receiver: str = "",
    ) -> None:
        if labels:
            self._note(kind, labels, guards, node, scope, called, receiver)
        if kind == "save" and not {each.of for each in labels} <= self._written:
            self._written |= {each.of for each in labels}
            self._changed = True

    def _own_load(self, node: ast.Call, scope: _Scope) -> Labels:
        """The label of a load that no option feeds."""
        key = (str(scope.module.path), node.lineno, node.col_offset)
        number = self._loads.setdefault(key, -1 - len(self._loads))
        return frozenset({Label(number, "path")})

    def _note_count(self, node: ast.Compare, scope: _Scope, guards: frozenset[Guard]) -> None:
        state = frozenset(each for each in self._value(node.left, scope, guards) if each.how == "state")
        if state:
            self._note("count", state, guards, node, scope, "while")

    def _note(  # noqa: PLR0917
        self,
        kind: str,
        labels: Labels,
        guards: frozenset[Guard],
        node: ast.AST,
        scope: _Scope,
        called: str,
        receiver: str = "",
    ) -> None:
        line, column = getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
        key = (scope.module.shown, line, column, kind + receiver)
        before = self.events.get(key)
        if before is not None:
            labels |= before.labels
        texts = tuple(
            each.value for each in ast.walk(node) if isinstance(each, ast.Constant) and isinstance(each.value, str)
        )[:8]
        self.events[key] = Event(
            kind=kind, labels=labels, guards=guards if before is None else guards & before.guards or guards,
            module=scope.module.shown, line=line, called=called, receiver=receiver, text=texts,
        )  # fmt: skip

    def _tests(self, test: ast.expr, scope: _Scope) -> tuple[frozenset[Guard], frozenset[Guard]]:
        """The guards of the two branches of a test."""
        none: frozenset[Guard] = frozenset()
        match test:
            case ast.UnaryOp(op=ast.Not(), operand=inner):
                yes, no = self._tests(inner, scope)
                return no, yes
            case ast.BoolOp(op=ast.And(), values=values):
                return none.union(*(self._tests(v, scope)[0] for v in values)), none
            case ast.BoolOp(op=ast.Or(), values=values):
                return none, none.union(*(self._tests(v, scope)[1] for v in values))
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return self._comparison(left, op, right, scope)
            case ast.Call(func=ast.Attribute(value=inner, attr="startswith" | "endswith"), args=[given, *_]):
                word = text_of(given) or ""
                of = self._options_in(inner, scope)
                return frozenset(Guard(n, on=True, value=word) for n in of), none
            case _:
                of = self._options_in(test, scope)
                return frozenset(Guard(n, on=True) for n in of), frozenset(Guard(n, on=False) for n in of)

    def _comparison(
        self, left: ast.expr, op: ast.cmpop, right: ast.expr, scope: _Scope
    ) -> tuple[frozenset[Guard], frozenset[Guard]]:
        none: frozenset[Guard] = frozenset()
        flag = text_of(left)
        if flag is not None and flag.startswith("-") and isinstance(op, ast.In | ast.NotIn):
            label = self._environment.get(f"$argv{flag}", NOTHING)
            on = frozenset(Guard(each.of, on=True) for each in label)
            off = frozenset(Guard(each.of, on=False) for each in label)
            return (on, off) if isinstance(op, ast.In) else (off, on)
        of = self._options_in(left, scope)
        if not of and "argv" in ast.unparse(left):  # len(sys.argv) > 1
            of = [
                each.of
                for labels in self._environment.values()
                for each in labels
                if self.options[each.of].kind == "positional"
            ]
        value = constant(right)
        yes = frozenset(Guard(n, on=True) for n in of)
        no = frozenset(Guard(n, on=False) for n in of)
        if isinstance(op, ast.Is | ast.Eq) and (value is None or value in ("", False, 0, "none", "None", -1)):
            return (no, yes) if isinstance(right, ast.Constant | ast.UnaryOp) else (none, none)
        if isinstance(op, ast.IsNot | ast.NotEq) and (value is None or value in ("", False, 0, "none", "None", -1)):
            return yes, no
        if isinstance(op, ast.Eq) and isinstance(value, str):
            return frozenset(Guard(n, on=True, value=value) for n in of), none
        if isinstance(op, ast.NotEq) and isinstance(value, str):
            return none, frozenset(Guard(n, on=True, value=value) for n in of)
        if (
            isinstance(op, ast.In)
            and isinstance(value, list | tuple | set)
            and (texts := [v for v in value if isinstance(v, str)])
        ):
            return frozenset(Guard(n, on=True, value=texts[0]) for n in of), none
        if isinstance(op, ast.NotIn):
            return none, none
        return yes, none

    def _options_in(self, node: ast.expr, scope: _Scope) -> list[int]:
        if isinstance(node, ast.Constant):
            return []
        found = self._value(node, scope, frozenset())
        for each in ast.walk(node):
            if isinstance(each, ast.Call) and last(dotted(each)) in words.LOOKS | {"isinstance", "len", "bool", "str"}:
                for arg in each.args:
                    found |= self._value(arg, scope, frozenset())
                if isinstance(each.func, ast.Attribute):
                    found |= self._value(each.func.value, scope, frozenset())
        return sorted(
            {
                each.of
                for each in found
                if each.of >= 0 and each.how in {"path", "inside", "found"} and self._telling[each.of]
            }
        )


_WRITES_SELF = frozenset({"mkdir", "write_bytes", "write_text"})
"""Methods of a path that write to it."""
_READS = frozenset({"read", "readline", "readlines", "read_bytes", "read_text"})
_MOVES = frozenset({"replace", "rename", "renames", "move", "copyfile", "copy", "copy2"})
"""Calls whose last argument is written to."""
_TAKES_STATE = frozenset({
    "load_state_dict", "set_state_dict", "load_from_state_dict", "set_weights", "set_state", "setstate",
    "set_rng_state", "from_bytes", "from_state_dict", "__setstate__",
})  # fmt: skip
"""Last names of calls that give what was loaded to a part of the training."""
_NO_PLACES = frozenset({"map_location", "device", "weights_only", "strict", "dtype", "mode", "encoding", "key", "rank"})
"""Keywords of loads that name no file."""
_LIBRARIES = frozenset(
    {"torch", "numpy", "np", "os", "json", "pickle", "yaml", "transformers", "datasets", "safetensors", "joblib"}
)
_DATA_LOADS = frozenset({
    "load_dataset", "load_from_disk", "imread", "read_csv", "read_json", "read_parquet", "safe_load", "loads",
    "load_yaml", "load_json", "load_toml", "load_config", "load_dotenv", "load_metric", "load_image", "load_data",
    "load_ext", "load_module", "load_library", "load_tokenizer", "load_vocab", "loadtxt", "load_img", "load_array",
    "preload", "upload", "download", "reload_ext", "payload", "fullload", "full_load", "load_all", "workload",
    "load_extension", "load_template", "hub_load",
})  # fmt: skip
"""Reads of data, settings and code, no states of a training."""


def _is_config(called: str) -> bool:
    return called.startswith(
        ("yaml.", "json.", "toml.", "tomllib.", "tomli.", "OmegaConf.", "omegaconf.", "datasets.", "ruamel.", "dotenv.")
    )


def _places(labels: Labels) -> Labels:
    return frozenset(each for each in labels if each.how in {"path", "inside", "found"})


def _below(labels: Labels) -> Labels:
    return frozenset(Label(each.of, "inside" if each.how == "path" else each.how, each.value) for each in labels)


class _Facts(NamedTuple):
    """What a scope does by itself: it reads or restores something, looks for files, or stores what a resume uses."""

    called: set[str]
    loads: bool
    looks: bool
    sets: bool


def _facts(scope: _Scope) -> _Facts:
    called: set[str] = set()
    loads = looks = sets = False
    for node in _own_nodes(scope.node):
        if isinstance(node, ast.Call):
            name = last(dotted(node.func))
            called.add(name)
            loads |= bool(words.LOADS.search(name) and name not in _DATA_LOADS) or name == "open"
            loads |= bool(words.GOES_ON.search(name))
            loads |= any(k.arg is not None and words.WHOLE_KEYWORDS.search(k.arg) for k in node.keywords)
            looks |= name in words.LOOKS or bool(words.FINDS.search(name))
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            sets |= bool(words.RESUME.search(node.attr) or words.CHECKPOINT.search(node.attr))
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            text = text_of(node.slice) or ""
            sets |= bool(words.RESUME.search(text) or words.CHECKPOINT.search(text))
    return _Facts(called, loads, looks, sets)


def _own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a scope without those of the functions in it."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, FUNCTIONS):
            yield child
            yield from _own_nodes(child)


def _tells(option: Option, number: int) -> bool:
    """Whether a test of the option may decide about a resume; with few options, that of any flag may."""
    text = f"{option.name} {option.help} {' '.join(option.choices)}"
    if words.RESUME.search(text) or words.CHECKPOINT.search(option.name):
        return True
    if option.takes in {"flag", "truth"}:
        return number <= FEW_OPTIONS
    return option.takes == "value" and not option.default and number <= FEW_OPTIONS
