"""The tests around a call: on which options it depends that it is made."""

import ast

from .. import words
from ..known_values import UNKNOWN
from ..options.option import Option
from ..syntax import constant, dotted, last, text_of
from .flow_tables import FlowTables
from .labels import NOTHING, Guard, Labels
from .scopes import Scope


class GuardReader(FlowTables):
    """Reads the tests of ``if`` and ``while``: which values they let through."""

    def _tests(self, test: ast.expr, scope: Scope) -> tuple[frozenset[Guard], frozenset[Guard]]:
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
        self, left: ast.expr, op: ast.cmpop, right: ast.expr, scope: Scope
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
        if isinstance(op, ast.Gt) and value in {0, -1}:
            return yes, no
        return none, none

    def _options_in(self, node: ast.expr, scope: Scope) -> list[int]:
        if isinstance(node, ast.Constant):
            return sorted(self._switch(node, NOTHING, scope))
        found = self._value(node, scope, frozenset())
        for each in ast.walk(node):
            if isinstance(each, ast.Call) and last(dotted(each)) in words.LOOKS | {"isinstance", "len", "bool", "str"}:
                for arg in each.args:
                    found |= self._value(arg, scope, frozenset())
                if isinstance(each.func, ast.Attribute):
                    found |= self._value(each.func.value, scope, frozenset())
        of = {
            each.of
            for each in found
            if each.of >= 0 and each.how in {"path", "inside", "found"} and self._telling[each.of]
        }
        return sorted(of or self._switch(node, found, scope))

    def _switch(self, node: ast.expr, found: Labels, scope: Scope) -> set[int]:
        """The number of a value that the source sets itself, or of one that is named after a resume and not seen."""
        name = _named(node)
        if not name:
            return set()
        if id(node) not in self._valued:
            self._valued[id(node)] = self._values.of(node, scope)
        value = self._valued[id(node)]
        unseen = isinstance(value, str) and UNKNOWN in value
        of = found if isinstance(node, ast.Name) else self._key(name)
        named = words.RESUME.search(name) or words.CHECKPOINT.search(name)
        if unseen and (of or not self._settled or not named or words.FINDS.search(name)):
            return set()
        file, line = self._values.set_at(node, scope)
        if (name, file, line) not in self._switches:
            self._switches[name, file, line] = len(self.options)
            default = None if unseen else value
            self.options.append(
                Option(name=name, dest=name, kind="switch", default=default, unseen=unseen, file=file, line=line)
            )
            self._telling.append(True)
        return {self._switches[name, file, line]}


def _named(node: ast.AST) -> str:
    """The last name of a variable, a field or a key (``cfg["resume"]``); "" for another expression."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            pass
        case ast.Subscript(slice=ast.Constant(value=str() as name)):
            pass
        case ast.Call(func=ast.Attribute(attr="get"), args=[ast.Constant(value=str() as name), *_]):
            pass
        case ast.Constant():
            name = "the test"
        case _:
            return ""
    return name
