"""The statements of a function or module as a list of steps, each with the tests and loops around it."""

import ast
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from .project import FUNCTIONS, Scope

CAUGHT = ast.Name(id="an exception", ctx=ast.Load())
"""The test around what an ``except`` does."""
_ENDS = (ast.Return, ast.Raise, ast.Continue, ast.Break)
"""Nothing after a block that such a statement ends runs."""


class Site(NamedTuple):
    """A statement or a call: the tests around it and whether each must hold, and the loops that it is in.

    ``each``: those over values that are written out: the variable, and the values.
    """

    node: ast.AST
    scope: Scope
    tests: tuple[tuple[ast.expr, bool], ...] = ()
    loops: tuple[ast.expr, ...] = ()
    each: tuple[tuple[str, tuple[ast.expr, ...]], ...] = ()

    @property
    def place(self) -> str:
        return f"{self.scope.module.shown}:{getattr(self.node, 'lineno', 0)}"

    def under(self, test: ast.expr, *, wanted: bool = True) -> "Site":
        return self._replace(tests=(*self.tests, (test, wanted)))


class Step(NamedTuple):
    """A statement without the blocks in it, or one of the ``with`` items of it: ``targets`` are set to its value."""

    site: Site
    values: tuple[ast.expr, ...]
    targets: tuple[ast.expr, ...] = ()


def steps_of(body: Iterable[ast.stmt], at: Site) -> Iterator[Step]:
    """Those of a block in their order, without those of the functions in it. ``at``: what is around the block."""
    for statement in body:
        here = at._replace(node=statement)
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                pass  # a scope of its own
            case ast.ClassDef(body=inner):
                yield Step(here, tuple(statement.decorator_list))
                yield from steps_of([each for each in inner if not isinstance(each, FUNCTIONS)], at)
            case ast.Assign(targets=targets, value=value):
                yield Step(here, (value,), tuple(targets))
            case ast.AnnAssign(target=target, value=value) | ast.AugAssign(target=target, value=value) if (
                value is not None
            ):
                yield Step(here, (value,), (target,))
            case ast.If(test=test, body=inner, orelse=orelse):
                yield Step(here, (test,))
                yes, no = at.under(test), at.under(test, wanted=False)
                yield from steps_of(inner, yes)
                yield from steps_of(orelse, no)
                if not orelse and isinstance(inner[-1], _ENDS):
                    at = no
                elif orelse and isinstance(orelse[-1], _ENDS):
                    at = yes
            case (
                ast.For(target=target, iter=values, body=inner, orelse=orelse)
                | ast.AsyncFor(target=target, iter=values, body=inner, orelse=orelse)
            ):
                yield Step(here, (values,), (target,))
                looped = at._replace(loops=(*at.loops, values))
                if isinstance(values, ast.Tuple | ast.List):
                    name = target.id if isinstance(target, ast.Name) else ""
                    looped = at._replace(each=(*at.each, (name, tuple(values.elts))))
                yield from steps_of([*inner, *orelse], looped)
            case ast.While(test=test, body=inner, orelse=orelse):
                looped = here._replace(loops=(*at.loops, test))
                yield Step(looped, (test,))
                yield from steps_of([*inner, *orelse], looped)
            case ast.With(items=items, body=inner) | ast.AsyncWith(items=items, body=inner):
                for item in items:
                    yield Step(here, (item.context_expr,), tuple(filter(None, (item.optional_vars,))))
                yield from steps_of(inner, at)
            case ast.Try(body=inner) | ast.TryStar(body=inner):
                yield from steps_of(inner, at)
                for handler in statement.handlers:
                    yield from steps_of(handler.body, at.under(CAUGHT))
                yield from steps_of([*statement.orelse, *statement.finalbody], at)
            case ast.Match(subject=subject, cases=cases):
                yield Step(here, (subject,))
                for case in cases:
                    compared = [case.pattern.value] if isinstance(case.pattern, ast.MatchValue) else []
                    test = ast.copy_location(ast.Compare(subject, [ast.Eq()], [*compared]), subject)
                    yield from steps_of(case.body, at.under(test) if compared else at)
            case _:
                yield Step(here, tuple(n for n in ast.iter_child_nodes(statement) if isinstance(n, ast.expr)))
