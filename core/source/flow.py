"""Where the values of a trainer's options go: which of them reach a call that restores a training.

No value is computed. Names stand for sets of labels: an option's own value, a path made of it, what was found or
loaded by it. Assignments, attributes, arguments and returned values pass labels on, until nothing changes; the tests
around a call say which options it depends on. Names are taken together over the whole project (``self.resume`` of one
class is that of another), so more is found than there is: an error on the side that a proof catches (a resume is
checked by its first steps), never one that starts anything by itself.
"""

import ast
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from . import words
from .options import Option, argv_index, argv_searched, environment_name
from .project import (
    FUNCTIONS,
    Scope,
    Scopes,
    Site,
    Step,
    called,
    constant,
    keyword,
    last,
    own_name,
    own_nodes,
    parameters,
    resolved,
    root_of,
    text_of,
)
from .values import KnownValues

PASSES = 6
"""Rounds until nothing changes; each carries a label over one more call."""
FEW_OPTIONS = 40
"""A trainer with more has options of all kinds, and only names tell which of them are about a resume."""
MOST_SAME_NAME = 4
"""Functions of one name; more say nothing about which is meant."""
_NAME_OF_A_FILE = re.compile(r"[\w.\-~]*[./][\w.\-/~]*")
"""Texts that may be the name of a file: two uses of the same text may be the same file."""
_ONLY_WITH_LABELS = frozenset({"look", "part", "save", "hand"})
"""Kinds of events that say nothing if no value is known to go in."""
_OFF = (None, "", False, 0, "none", "None", -1)


class Label(NamedTuple):
    """``of``: number of the option; negative: of a text in the source, or of a load or search that no option feeds.

    ``how``: "path" the value; "inside" a path below it; "found" found in it; "state" loaded from it; "when" chosen by
    it. ``form``: what of a path the value is, if the trainer puts the rest around it: "name" in a folder that it knows
    itself, "path" without an ending, "name-.pth", "path-.pth"; "" = all of it.
    """

    of: int
    how: str
    value: str = ""
    form: str = ""


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
    site: Site | None = None

    def of(self, *hows: str) -> set[int]:
        """The options, texts and loads whose values go in in one of these ways; without one in any way."""
        return {each.of for each in self.labels if not hows or each.how in hows}


FIRST_TEXT = -1_000_000
"""Number of the first text in the source, from there downwards; loads that no option feeds have those above it."""

Labels = frozenset[Label]
NOTHING: Labels = frozenset()
Guards = frozenset[Guard]
FREE: Guards = frozenset()
"""No test at all."""


def of_kinds(labels: Labels, *hows: str) -> Labels:
    return frozenset(each for each in labels if each.how in hows)


def only_places(labels: Labels) -> Labels:
    return of_kinds(labels, "path", "inside", "found")


def below(labels: Labels) -> Labels:
    return frozenset(Label(each.of, "inside" if each.how == "path" else each.how, each.value) for each in labels)


def is_own_load(of: int) -> bool:
    """Whether a label is of a load that takes no path."""
    return FIRST_TEXT < of < 0


class Here(NamedTuple):
    """Where an expression stands: in which function or module, and under which tests."""

    scope: Scope
    guards: Guards = FREE

    def under(self, guards: Guards) -> "Here":
        return Here(self.scope, self.guards | guards)


class ValueFlow:
    """The flow through one project; each pass over its statements adds to what is known.

    ``others``: ids of functions that only another subcommand calls. ``events``: all that was seen. ``read``:
    destinations that it reads. ``savers``: what calls that save are called on.
    """

    def __init__(self, values: KnownValues, options: Sequence[Option], others: Collection[int] = ()) -> None:
        self.options = list(options)
        self.events: dict[tuple[str, int, int, str], Event] = {}
        self.read: set[str] = set()
        self.savers: set[str] = set()
        self._modules = values.project.modules
        self._all = values.scopes
        asked = {option.dest for option in options if words.RESUME.search(option.name)}
        self._scopes = _relevant(self._all, asked, others)
        self._variables: dict[tuple[int, str], Labels] = {}
        self._attributes: dict[str, Labels] = {}
        self._returned: dict[int, Labels] = {}
        self._called_under: dict[int, Guards] = {}
        self._unguarded: set[int] = set()
        self._loads: dict[tuple[str, int, int], int] = {}
        self._texts: dict[str, int] = {}
        self._written: set[int] = set()
        self._changed = False
        self._noted: set[tuple[str, int, int, str]] = set()
        self._seeds: dict[str, Labels] = {}
        self._environment: dict[str, Labels] = {}
        self._telling = [_tells(option, len(options)) for option in options]
        self.values = values
        roots = {name.partition(".")[0] for module in self._modules for name in module.aliases.values()}
        self._known_ways = [way for way in words.KNOWN_WAYS if way.library in roots]
        self._seed()
        self._run()

    def _seed(self) -> None:
        spread = any(k.arg is None for m in self._modules for c in m.calls for k in c.keywords)
        for number, option in enumerate(self.options):
            label = frozenset({Label(number, "path")})
            if option.kind == "environment" or option.dest.startswith("$argv"):
                self._environment[option.dest] = self._environment.get(option.dest, NOTHING) | label
                continue
            self._seeds[option.dest] = self._seeds.get(option.dest, NOTHING) | label
            for scope in self._scopes:
                if not isinstance(scope.node, FUNCTIONS):
                    if option.parameter == "<module>" and scope.module is self._modules[0]:
                        self._add(self._variables, (id(scope.node), option.dest), label)
                    continue
                named = scope.name == option.parameter or (spread and not option.parameter)
                if named and any(p.arg == option.dest for p in parameters(scope.node)):
                    self._add(self._variables, (id(scope.node), option.dest), label)

    def _run(self) -> None:
        for _ in range(PASSES):
            self._changed = False
            for scope in self._scopes:
                free = id(scope.node) in self._unguarded
                around = FREE if free else self._called_under.get(id(scope.node), FREE)
                known: dict[int, Guards] = {}
                for step in self.values.steps[id(scope.node)]:
                    tests = step.site.tests  # the same object for all steps of a block
                    if id(tests) not in known:
                        sides = (self._tests(test, scope)[not wanted] for test, wanted in tests)
                        known[id(tests)] = around.union(*sides)
                    self._step(step, Here(scope, known[id(tests)]))
            if not self._changed:
                break

    def _step(self, step: Step, here: Here) -> None:
        labels = self._values_of(step.values, here)
        match step.site.node:
            case ast.Return(value=value) if value is not None:
                self._add(self._returned, id(here.scope.node), labels | self._chosen(here.guards, value))
            case ast.While(test=ast.Compare(left=left) as test):
                if state := of_kinds(self._value(left, here), "state"):
                    self._note("count", state, test, here, "while")
        for target in step.targets:
            self._bind(target, step.values[0], labels, here)

    # --- names, and what they hold ---

    def _bind(self, target: ast.expr, value: ast.expr, labels: Labels, here: Here) -> None:
        labels |= self._chosen(here.guards, value)
        match target:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                if isinstance(target, ast.Name):
                    self._add(self._variables, (id(here.scope.node), name), labels)
                else:
                    self._add(self._attributes, name, labels)
                if of_kinds(labels, "state") and words.STEPS.search(name):
                    self._note("count", labels, target, here, name)
            case ast.Subscript(slice=ast.Constant(value=str() as name)):
                self._add(self._attributes, name, labels)
            case ast.Subscript(value=ast.Name(id=name)):
                self._add(self._variables, (id(here.scope.node), name), labels)
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                whole = not isinstance(value, ast.Tuple | ast.List) or len(value.elts) != len(elements)
                for number, element in enumerate(elements):
                    part = value if whole or not isinstance(value, ast.Tuple | ast.List) else value.elts[number]
                    self._bind(element, part, labels if whole else self._value(part, here), here)
            case ast.Starred(value=inner):
                self._bind(inner, value, labels, here)

    def _chosen(self, guards: Guards, value: ast.expr) -> Labels:
        """What is set only if an option is given is chosen by it; to set it to nothing or a number chooses nothing."""
        if (isinstance(value, ast.Constant) and not isinstance(value.value, str)) or not guards:
            return NOTHING
        return frozenset(Label(g.of, "when", g.value if g.on else "-") for g in guards if self._telling[g.of])

    def _add(self, table: dict[Any, Labels], key: Any, labels: Labels) -> None:
        before = table.get(key, NOTHING)
        if not labels <= before:
            table[key] = before | labels
            self._changed = True

    def _variable(self, name: str, scope: Scope) -> Labels:
        found: Labels = NOTHING
        at: Scope | None = scope
        while at is not None:
            found |= self._variables.get((id(at.node), name), NOTHING)
            at = at.parent
        return found

    def _key(self, name: str) -> Labels:
        if name in self._seeds:
            self.read.add(name)
        return self._seeds.get(name, NOTHING) | self._attributes.get(name, NOTHING)

    # --- expressions ---

    def _value(self, node: ast.expr | None, here: Here) -> Labels:
        scope = here.scope
        match node:
            case ast.Constant(value=str() as words_) if _NAME_OF_A_FILE.fullmatch(words_):
                of = self._texts.setdefault(words_, FIRST_TEXT - len(self._texts))
                return frozenset({Label(of, "path")})
            case None | ast.Constant():
                return NOTHING
            case ast.Name(id=name):
                return self._variable(name, scope)
            case ast.Attribute(value=base, attr=name):
                if root_of(node) in scope.module.aliases and not self._variable(root_of(node), scope):
                    return NOTHING
                held = self._key(name) | self._value(base, here)
                if held or not words.FINDS.search(name):
                    return held
                return frozenset(Label(each.of, "found") for each in self._own_load(node, scope))
            case ast.Subscript(value=base, slice=index):
                if (variable := environment_name(scope.module, node)) is not None:
                    return self._environment.get(f"${variable}", NOTHING)
                if (number := argv_index(scope.module, node)) is not None:
                    return self._environment.get(f"$argv{number}", NOTHING)
                text = text_of(index)
                return self._value(base, here) | (self._value(index, here) if text is None else self._key(text))
            case ast.Call():
                if (searched := argv_searched(node)) is not None:  # its value stands behind it
                    return self._environment.get(f"$argv{searched}", NOTHING)
                return self._call(node, here)
            case ast.Dict(keys=keys, values=values):
                for key, value in zip(keys, values, strict=True):
                    if (text := text_of(key)) is not None and constant(value) is True:
                        self._note_known(node, "", {text: value}, here)
                return self._values_of([*filter(None, keys), *values], here)
            case ast.Compare():
                self._values_of([node.left, *node.comparators], here)
                return NOTHING
            case ast.IfExp(test=test, body=body, orelse=orelse):
                self._value(test, here)
                yes, no = self._tests(test, scope)
                found = self._value(body, here.under(yes)) | self._chosen(yes, body)
                return found | self._value(orelse, here.under(no)) | self._chosen(no, orelse)
            case ast.NamedExpr(target=target, value=value):
                labels = self._value(value, here)
                self._bind(target, value, labels, here)
                return labels
            case ast.Lambda(body=body):
                return self._value(body, here)
            case ast.BinOp(left=left, op=ast.Div(), right=right):
                return below(self._value(left, here)) | self._value(right, here)
            case ast.JoinedStr() | ast.BinOp(op=ast.Add()) if any(isinstance(p, str) for p in parts_of(node)):
                parts = parts_of(node)
                given = [self._value(ast.Constant(p) if isinstance(p, str) else p, here) for p in parts]
                return NOTHING.union(*(in_text(parts, at, labels) for at, labels in enumerate(given)))
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                found = NOTHING
                for part in node.generators:
                    inner = self._value(part.iter, here)
                    self._bind(part.target, part.iter, inner, here)
                    found |= inner
                return found
            case _:
                return self._values_of(ast.iter_child_nodes(node), here)

    def _values_of(self, nodes: Iterable[ast.AST], here: Here) -> Labels:
        return NOTHING.union(*[self._value(each, here) for each in nodes if isinstance(each, ast.expr)])

    def _call(self, node: ast.Call, here: Here) -> Labels:
        """What a call gives back: it loads, restores, saves, looks, or passes its values on."""
        scope = here.scope
        full = resolved(scope.module, node.func).lstrip(".")
        name = last(full)
        if (variable := environment_name(scope.module, node)) is not None:
            return self._environment.get(f"${variable}", NOTHING)
        base = self._value(node.func.value, here) if isinstance(node.func, ast.Attribute) else NOTHING
        given = [self._value(each.value if isinstance(each, ast.Starred) else each, here) for each in node.args]
        named = {k.arg: self._value(k.value, here) for k in node.keywords}
        inside = base.union(*given, *named.values())
        if _reads_data(full):  # what stands in a config is not the config's path
            inside = frozenset(e for e in inside if e.how != "path" or (e.of >= 0 and says_resume(self.options[e.of])))
        if name in {"get", "pop", "getattr", "setdefault"} and node.args:
            text = text_of(node.args[1] if name == "getattr" and len(node.args) > 1 else node.args[0])
            return inside | (self._key(text) if text is not None else NOTHING)
        targets = self._targets(node, name, scope)
        for target in targets:
            self._pass_on(target, given, named, here)
        result = self._effects(node, here, full, base, given, named, known=bool(targets))
        if targets and targets[0].name != "__init__":
            inside = result.union(*(self._returned.get(id(t.node), NOTHING) for t in targets))
            if words.FINDS.search(name):
                inside |= frozenset(
                    Label(each.of, "found", each.value) for g in (*given, *named.values()) for each in g
                )
            return inside
        for target in targets:
            if target.name != "__init__":
                inside |= self._returned.get(id(target.node), NOTHING)
        if of_kinds(result, "state"):
            return result  # what was loaded, no longer the path
        if name in words.LOOKS or name in {"isinstance", "len", "print", "hasattr"}:
            return NOTHING
        if words.FINDS.search(name):
            inside |= self._own_load(node, scope)
            return result | frozenset(
                Label(each.of, "found" if each.how in {"path", "inside"} else each.how, each.value) for each in inside
            )
        if name == "join" and "path" in full:
            return result | below(given[0] if given else NOTHING) | NOTHING.union(*given[1:])
        if name == "joinpath":
            return result | below(inside)
        if name[:1].isupper() or name in self._all.classes:  # what is made of loaded values is not them
            return frozenset(each for each in inside if each.how != "state") | result
        return inside | result

    def _targets(self, node: ast.Call, name: str, scope: Scope) -> list[Scope]:
        if name in self._all.classes and not isinstance(node.func, ast.Attribute | ast.Call):
            return self._all.classes[name]
        found = self._all.functions.get(name, [])
        if len(found) > MOST_SAME_NAME:
            return []
        if isinstance(node.func, ast.Attribute) and root_of(node.func) in scope.module.aliases:
            origin = scope.module.aliases[root_of(node.func)]
            near = [f for f in found if last(origin) in {f.module.path.stem, f.module.path.parent.name}]
            return near or ([] if origin.partition(".")[0] in words.LIBRARIES else found)
        return [f for f in found if not (f.owner and isinstance(node.func, ast.Name) and f.owner != scope.owner)]

    def _pass_on(self, target: Scope, given: list[Labels], named: Mapping[str | None, Labels], here: Here) -> None:
        assert isinstance(target.node, FUNCTIONS)
        names = [p.arg for p in parameters(target.node)]
        if names[:1] in (["self"], ["cls"]):
            names = names[1:]
        for name, labels in (*zip(names, given, strict=False), *((k, v) for k, v in named.items() if k in names)):
            self._add(self._variables, (id(target.node), str(name)), labels)
        if here.guards:
            before = self._called_under.get(id(target.node), FREE)
            self._called_under[id(target.node)] = before | here.guards
            self._changed |= not here.guards <= before
        elif id(target.node) not in self._unguarded and here.scope.name != target.name:
            self._unguarded.add(id(target.node))
            self._changed = True

    def _effects(  # noqa: PLR0915, PLR0917  one case for each kind
        self,
        node: ast.Call,
        here: Here,
        full: str,
        base: Labels,
        given: list[Labels],
        named: Mapping[str | None, Labels],
        *,
        known: bool,
    ) -> Labels:
        """Note what the call does. Returns what its result has beside what went in. ``known``: of the project."""
        scope, name, receiver = here.scope, last(full), full.rpartition(".")[0]
        inside = base.union(*given, *named.values())
        places = NOTHING.union(*(value for key, value in named.items() if key not in words.NO_PLACES)).union(
            *(each for arg, each in zip(node.args, given, strict=True) if "device" not in ast.unparse(arg))
        )
        paths = of_kinds(places, "path", "inside", "found", "when")
        own = self._loads.get((str(scope.module.path), node.lineno, node.col_offset))
        state = frozenset(each for each in inside - base if each.how == "state" and each.of != own)
        if words.TRACKERS.search(full):
            return NOTHING
        for key, labels in named.items():
            if key is None or not words.WHOLE_KEYWORDS.search(key) or known:
                continue
            text = constant(keyword(node, key))
            if labels:
                self._note("count" if key == "initial_epoch" else "whole", labels, node, here, full, key)
            elif text is True or (isinstance(text, str) and text.lower() in words.NEWEST):
                self._note("whole", self._own_load(node, scope), node, here, full, key)
        self._note_known(node, name, {k.arg: k.value for k in node.keywords if k.arg}, here)
        if name in words.LOOKS:
            self._note("look", paths, node, here, full)
            return NOTHING
        if name == "open":  # for writing it is saved, else what is read from it is loaded
            paths |= base if full != "open" else NOTHING
            mode = text_of(keyword(node, "mode") or next((a for a in reversed(node.args) if text_of(a)), None)) or "r"
            writes = len(mode) <= 4 and bool(set(mode) & set("wax"))
            self._note("save" if writes else "look", only_places(paths), node, here, full)
            return paths
        if words.GOES_ON.search(name) and not known:
            self._note("whole", paths | self._own_load(node, scope), node, here, full, "resume")
            return NOTHING
        if words.FINDS.search(name):
            self._note("find", paths, node, here, full)
        if name == "range" and (begun := state | of_kinds(inside, "found")):
            self._note("count", begun, node, here, full)
        if name in words.TAKES_STATE:
            self._note("part", state, node, here, full, receiver)
            return NOTHING
        if name in words.MOVES and given and len(given) <= 2:
            self._note("save", only_places(given[-1]), node, here, full)
            return NOTHING
        if words.SAVES.search(name) and not words.LOADS.search(name):
            first = given[0] if len(given) == 1 or full.startswith(("np.", "numpy.")) else NOTHING.union(*given[1:])
            written = (first | base if name in words.WRITES_SELF else first).union(*named.values())
            if not known:
                self._note("save", only_places(written), node, here, full)
                self.savers.add(receiver)
            return NOTHING
        if name in words.READS:
            paths |= of_kinds(base, "path", "inside", "found", "when")
        elif not (words.LOADS.search(name) or words.WHOLE.search(name)):
            if known:
                self._note("hand", state, node, here, full)
            return NOTHING
        if state and not paths:
            self._note("part", state, node, here, full, receiver)
            return NOTHING
        meant = any(each.of in self._written or (each.of >= 0 and says_resume(self.options[each.of])) for each in paths)
        if known or (_reads_data(full) and not meant):
            return NOTHING  # what a function of the project does is seen inside it
        of = paths or self._own_load(node, scope)
        whole = bool(words.WHOLE.search(name)) and not name.startswith("load_model")
        self._note("whole" if whole else "load", of, node, here, full, receiver)
        loaded = frozenset(each for each in of if each.how != "when") or of
        return frozenset(Label(each.of, "state") for each in loaded)

    # --- what is noted ---

    def _note(  # noqa: PLR0917
        self, kind: str, labels: Labels, node: ast.AST, here: Here, full: str, receiver: str = "",
        test: ast.expr | None = None,
    ) -> None:  # fmt: skip
        """``test``: a value that must be on, beside the tests around the node."""
        if not labels and kind in _ONLY_WITH_LABELS:
            return
        line, column = getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
        key = (here.scope.module.shown, line, column, kind + receiver)
        before = self.events.get(key)
        guards = here.guards & before.guards if before is not None and key in self._noted else here.guards
        self._noted.add(key)
        site = self.values.sites.get(id(node))
        texts = (text for each in ast.walk(node) if (text := text_of(each)) is not None)
        self.events[key] = Event(
            kind=kind, labels=labels | before.labels if before is not None else labels,
            guards=guards or here.guards, module=here.scope.module.shown, line=line, called=full, receiver=receiver,
            text=tuple(texts)[:8], site=site if site is None or test is None else site.under(test),
        )  # fmt: skip
        if kind == "save" and not {each.of for each in labels} <= self._written:
            self._written |= {each.of for each in labels}
            self._changed = True

    def _note_known(self, node: ast.expr, name: str, given: Mapping[str, ast.expr], here: Here) -> None:
        for way in self._known_ways:
            value = given.get(way.keyword)
            if way.call not in {"", name} or (way.keyword and value is None):
                continue
            of = NOTHING if value is None or way.call else self._value(value, here)
            if isinstance(value, ast.Constant) and not value.value:
                continue
            options = [each.of for each in of if each.of >= 0]
            on, test = here.under(_guards(options)), value if options else None
            self._note("known", self._own_load(node, here.scope), node, on, way.call or way.keyword, way.source, test)

    def _own_load(self, node: ast.expr, scope: Scope) -> Labels:
        """The label of a load that no option feeds, or of what an object found (``manager.latest_checkpoint``)."""
        key = (str(scope.module.path), node.lineno, node.col_offset)
        number = self._loads.setdefault(key, -1 - len(self._loads))
        return frozenset({Label(number, "path")})

    # --- tests: which values they let through ---

    def _tests(self, test: ast.expr, scope: Scope) -> tuple[Guards, Guards]:
        match test:
            case ast.UnaryOp(op=ast.Not(), operand=inner):
                yes, no = self._tests(inner, scope)
                return no, yes
            case ast.BoolOp(op=ast.And(), values=values):
                return FREE.union(*(self._tests(v, scope)[0] for v in values)), FREE
            case ast.BoolOp(op=ast.Or(), values=values):
                return FREE, FREE.union(*(self._tests(v, scope)[1] for v in values))
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return self._comparison(left, op, right, scope)
            case ast.Call(func=ast.Attribute(value=inner, attr="startswith" | "endswith"), args=[given, *_]):
                return _guards(self._options_in(inner, scope), value=text_of(given) or ""), FREE
            case _:
                of = self._options_in(test, scope)
                return _guards(of), _guards(of, on=False)

    def _comparison(self, left: ast.expr, op: ast.cmpop, right: ast.expr, scope: Scope) -> tuple[Guards, Guards]:
        flag = text_of(left)
        if flag is not None and flag.startswith("-") and isinstance(op, ast.In | ast.NotIn):
            of = [each.of for each in self._environment.get(f"$argv{flag}", NOTHING)]
            both = _guards(of), _guards(of, on=False)
            return both if isinstance(op, ast.In) else both[::-1]
        of = self._options_in(left, scope)
        if not of and "argv" in ast.unparse(left):  # len(sys.argv) > 1
            of = [each.of for labels in self._environment.values() for each in labels]
            of = [each for each in of if self.options[each].kind == "positional"]
        value = constant(right)
        yes, no = _guards(of), _guards(of, on=False)
        equal, unequal = isinstance(op, ast.Is | ast.Eq), isinstance(op, ast.IsNot | ast.NotEq)
        texts = [v for v in value if isinstance(v, str)] if isinstance(value, list | tuple | set) else []
        if unequal and (value is None or value in _OFF):
            return yes, no
        if equal and (value is None or value in _OFF):
            return (no, yes) if isinstance(right, ast.Constant | ast.UnaryOp) else (FREE, FREE)
        if isinstance(op, ast.Eq) and isinstance(value, str):
            return _guards(of, value=value), FREE
        if isinstance(op, ast.NotEq) and isinstance(value, str):
            return FREE, _guards(of, value=value)
        if isinstance(op, ast.In) and texts:
            return _guards(of, value=texts[0]), FREE
        return (yes, no) if isinstance(op, ast.Gt) and value in (0, -1) else (FREE, FREE)

    def _options_in(self, node: ast.expr, scope: Scope) -> list[int]:
        found = self._value(node, Here(scope))
        for each in ast.walk(node):
            if isinstance(each, ast.Call) and called(each) in words.LOOKS | {"isinstance", "len", "bool", "str"}:
                of_method = [each.func.value] if isinstance(each.func, ast.Attribute) else []
                found |= self._values_of([*each.args, *of_method], Here(scope))
        return sorted({each.of for each in only_places(found) if each.of >= 0 and self._telling[each.of]})

    def carries(self, node: ast.expr, scope: Scope) -> bool:
        """Whether an option, a path or what was found or loaded goes into this value."""
        name = "" if isinstance(node, ast.Name) else own_name(node)
        return bool(self._key(name) if name else self._value(node, Here(scope)))


def _guards(of: Iterable[int], *, on: bool = True, value: str = "") -> Guards:
    return frozenset(Guard(number, on=on, value=value) for number in of)


def _reads_data(full: str) -> bool:
    name = last(full)
    return name in words.DATA_LOADS or name in words.READS or full.startswith(words.CONFIG_LIBRARIES)


def says_resume(option: Option) -> bool:
    return bool(words.RESUME.search(f"{option.name} {option.help}") or words.CHECKPOINT.search(option.name))


def _tells(option: Option, number: int) -> bool:
    """Whether a test of the option may decide about a resume; with few options, that of any flag may."""
    text = f"{option.name} {option.help} {' '.join(option.choices)}"
    if words.RESUME.search(text) or words.CHECKPOINT.search(option.name):
        return True
    small = option.takes in {"flag", "truth"} or (option.takes == "value" and not option.default)
    return small and number <= FEW_OPTIONS


# --- texts that are put together of values: which part of a path each value is (f"{out}/{name}.pth") ---

Part = ast.expr | str


def parts_of(node: ast.expr) -> list[Part]:
    """The parts of an f-string or of a sum, in their order; constants as text."""
    match node:
        case ast.JoinedStr(values=values):
            return [part for value in values for part in parts_of(value)]
        case ast.FormattedValue(value=value):
            return [value]
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return [*parts_of(left), *parts_of(right)]
        case ast.Constant(value=str() as text):
            return [text]
        case _:
            return [node]


def in_text(parts: Sequence[Part], at: int, labels: Labels) -> Labels:
    """``labels`` of the part ``at``, as the text uses it: a folder, a name in a folder, a path without its ending."""
    if isinstance(parts[at], str):
        return labels
    before, after = parts[:at], parts[at + 1 :]
    if any(isinstance(part, str) and "/" in part for part in after):
        return below(labels)
    glued = bool(before) and not (isinstance(before[-1], str) and before[-1].endswith("/"))
    ending = after[0] if len(after) == 1 else ""
    if glued or (after and not (isinstance(ending, str) and ending.startswith("."))):
        return labels
    form = ("name" if before else "path") + (f"-{ending}" if ending else "")
    if form == "path":
        return labels
    return frozenset(each._replace(form=form) if each.how == "path" else each for each in labels)


# --- the functions that matter ---


def _relevant(scopes: Scopes, asked: Collection[str], others: Collection[int]) -> list[Scope]:
    """Modules, functions that load or restore something, those that call them, and those that look for files for them.

    ``asked``: destinations of options that are named after a resume: who reads one of them matters. ``others``: ids of
    functions that only another subcommand calls.
    """
    facts = [_facts(scope, asked) for scope in scopes.all]
    calls = [called_ for called_, _ in facts]
    names = [{scope.name, scope.owner} if scope.name == "__init__" else {scope.name} for scope in scopes.all]
    chosen = {n for n, (_, does) in enumerate(facts) if "loads" in does}
    while True:
        wanted = {name for n in chosen for name in names[n] if len(scopes.functions.get(name, ())) <= MOST_SAME_NAME}
        wanted -= {"", "<module>", "forward", "__init__"}
        more = {n for n, each in enumerate(calls) if n not in chosen and each & wanted}
        if not more:
            break
        chosen |= more
    used = {name for n in chosen for name in calls[n]}
    chosen |= {n for n, (_, does) in enumerate(facts) if ("looks" in does and names[n] & used) or "sets" in does}
    left_out = {n for n, scope in enumerate(scopes.all) if id(scope.node) in others}
    while left_out:  # and what they alone call
        of_them = {name for n in left_out for name in calls[n]}
        used = {name for n, each in enumerate(calls) if n not in left_out for name in each}
        more = {n for n, each in enumerate(scopes.all) if each.name in of_them - used and each.name != "__init__"}
        if more <= left_out:
            break
        left_out |= more
    chosen -= left_out
    return [scope for n, scope in enumerate(scopes.all) if n in chosen or scope.name == "<module>"]


def _facts(scope: Scope, asked: Collection[str]) -> tuple[set[str], set[str]]:
    """What a scope calls, and what it does by itself: it "loads" or restores something, "looks" for files, "sets"."""
    names: set[str] = set()
    loads = looks = sets = False
    for node in own_nodes(scope.node):
        match node:
            case ast.Call():
                name, given = called(node), {k.arg for k in node.keywords if k.arg is not None}
                names.add(name)
                loads |= bool(words.LOADS.search(name) and name not in words.DATA_LOADS) or name == "open"
                loads |= any(words.WHOLE_KEYWORDS.search(each) for each in given)
                loads |= bool(words.GOES_ON.search(name))
                loads |= any(way.call == name or way.keyword in given for way in words.KNOWN_WAYS)
                looks |= name in words.LOOKS or bool(words.FINDS.search(name))
            case (
                ast.Attribute(attr=name, ctx=ast.Store())
                | ast.Subscript(slice=ast.Constant(value=str() as name), ctx=ast.Store())
            ):
                sets |= bool(words.RESUME.search(name) or words.CHECKPOINT.search(name))
            case ast.Attribute(attr=name) | ast.Name(id=name):
                loads |= name in asked
    return names, {word for word, holds in (("loads", loads), ("looks", looks), ("sets", sets)) if holds}
