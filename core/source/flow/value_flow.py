"""Where the values of a trainer's options go: which of them reach a call that restores a training.

No value is computed. Names stand for sets of labels: an option's own value, a path made of it, what was found or
loaded by it. Assignments, attributes, arguments and returned values pass labels on, until nothing changes; the tests
around a call say which options it depends on. Names are taken together over the whole project (``self.resume`` of one
class is that of another), so more is found than there is: an error on the side that a proof catches (a resume is
checked by its first steps), never one that starts anything by itself.
"""

import ast
from collections.abc import Collection, Iterable, Sequence

from ..options.option import Option
from ..project_modules import Project
from ..syntax import FUNCTIONS, constant, ends, parameters
from .expressions import ExpressionReader
from .labels import NOTHING, Guard, Label
from .scopes import Scope

PASSES = 6
"""Rounds until nothing changes; each carries a label over one more call."""


class ValueFlow(ExpressionReader):
    """The flow through one project: statements, until nothing changes."""

    def __init__(self, project: Project, options: Sequence[Option], others: Collection[int] = ()) -> None:
        super().__init__(project, options, others)
        self._seed()
        self._run()
        self._noted.clear()
        self._called_under.clear()
        self._settled = True
        self._run()

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

    def _block(self, body: Iterable[ast.stmt], scope: Scope, guards: frozenset[Guard]) -> None:
        for statement in body:
            guards = self._statement(statement, scope, guards)

    def _statement(  # noqa: PLR0915  one case for each kind
        self, node: ast.stmt, scope: Scope, guards: frozenset[Guard]
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

    def _note_count(self, node: ast.Compare, scope: Scope, guards: frozenset[Guard]) -> None:
        state = frozenset(each for each in self._value(node.left, scope, guards) if each.how == "state")
        if state:
            self._note("count", state, guards, node, scope, "while")
