"""What a call does with the values it gets: it loads, restores, saves, looks, or passes them on."""

import ast
from collections.abc import Mapping

from .. import words
from ..options.environment import environment_name
from ..syntax import FUNCTIONS, constant, dotted, keyword, last, parameters, root_of, text_of
from .call_names import (
    DATA_LOADS,
    LIBRARIES,
    MOVES,
    NO_PLACES,
    READS,
    TAKES_STATE,
    WRITES_SELF,
    is_config,
)
from .guards import GuardReader
from .labels import NOTHING, Guard, Label, Labels, below, only_places
from .scopes import MOST_SAME_NAME, Scope


class CallReader(GuardReader):
    def _call(self, node: ast.Call, scope: Scope, guards: frozenset[Guard]) -> Labels:
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
            return result | below(given[0] if given else NOTHING) | rest_
        if name == "joinpath":
            return result | below(inside)
        if name[:1].isupper() or name in self._classes:  # what is made of loaded values is not them
            return frozenset(each for each in inside if each.how != "state") | result
        return inside | result

    def _targets(self, node: ast.Call, name: str, scope: Scope) -> list[Scope]:
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
                return [] if origin.partition(".")[0] in LIBRARIES else found
            return near
        return [f for f in found if not (f.owner and isinstance(node.func, ast.Name) and f.owner != scope.owner)]

    def _pass_on(
        self,
        target: Scope,
        given: list[Labels],
        named: dict[str | None, Labels],
        guards: frozenset[Guard],
        scope: Scope,
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
        scope: Scope,
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
        places = NOTHING.union(*(value for key, value in named.items() if key not in NO_PLACES))
        places = places.union(
            *(each for arg, each in zip(node.args, given, strict=True) if "device" not in ast.unparse(arg))
        )
        paths = frozenset(each for each in places if each.how in {"path", "inside", "found", "when"})
        own = self._loads.get((str(scope.module.path), node.lineno, node.col_offset))
        state = frozenset(each for each in inside - base if each.how == "state" and each.of != own)
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
        self._note_known(node, name, {k.arg: k.value for k in node.keywords if k.arg}, scope, guards)
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
        if name == "range" and (begun := state | frozenset(each for each in inside if each.how == "found")):
            self._note("count", begun, guards, node, scope, called)
        if name in TAKES_STATE:
            self._note_if(state, "part", guards, node, scope, called, receiver)
            return NOTHING
        if name in MOVES and given and len(given) <= 2:
            self._note_if(only_places(given[-1]), "save", guards, node, scope, called)
            return NOTHING
        if words.SAVES.search(name) and not words.LOADS.search(name):
            first = given[0] if len(given) == 1 or called.startswith(("np.", "numpy.")) else NOTHING.union(*given[1:])
            written = (first | base if name in WRITES_SELF else first).union(*named.values())
            if not known:
                self._note_if(only_places(written), "save", guards, node, scope, called)
                self.savers.add(receiver)
            return NOTHING
        if name in READS:
            paths |= frozenset(each for each in base if each.how in {"path", "inside", "found", "when"})
        elif not (words.LOADS.search(name) or words.WHOLE.search(name)):
            if known:
                self._note_if(state, "hand", guards, node, scope, called)
            return NOTHING
        if state and not paths:
            self._note("part", state, guards, node, scope, called, receiver)
            return NOTHING
        meant = any(each.of in self._written or self._is_about_resume(each.of) for each in paths)
        data = name in DATA_LOADS or name in READS or is_config(called)
        if known or (data and not meant):
            return NOTHING  # what a function of the project does is seen inside it
        of = paths or self._own_load(node, scope)
        whole = bool(words.WHOLE.search(name)) and not name.startswith("load_model")
        self._note("whole" if whole else "load", of, guards, node, scope, called, receiver)
        return frozenset(Label(each.of, "state") for each in of if each.how != "when") or frozenset(
            Label(each.of, "state") for each in of
        )

    def _note_known(
        self, node: ast.expr, name: str, given: Mapping[str, ast.expr], scope: Scope, guards: frozenset[Guard]
    ) -> None:
        """A way to go on by itself that is known of a library, if it is on."""
        for way in self._known_ways:
            value = given.get(way.keyword)
            if way.call not in {"", name} or (way.keyword and value is None):
                continue
            of = NOTHING if value is None or way.call else self._value(value, scope, guards)
            if isinstance(value, ast.Constant) and not value.value:
                continue
            on = frozenset(Guard(each.of, on=True) for each in of if each.of >= 0)
            called = way.call or way.keyword
            self._note("known", self._own_load(node, scope), guards | on, node, scope, called, way.source)

    def _opened(self, node: ast.Call, scope: Scope, guards: frozenset[Guard], called: str, paths: Labels) -> Labels:
        """A file that is opened: for writing it is saved, else what is read from it is loaded."""
        mode = text_of(keyword(node, "mode") or next((a for a in reversed(node.args) if text_of(a)), None)) or "r"
        writes = len(mode) <= 4 and bool(set(mode) & set("wax"))
        self._note_if(only_places(paths), "save" if writes else "look", guards, node, scope, called)
        return paths
