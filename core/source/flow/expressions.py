"""The values of expressions, and the names that they are bound to."""

import ast
import re

from .. import words
from ..options.environment import argv_index, argv_searched, environment_name
from ..syntax import constant, root_of, text_of
from .calls import CallReader
from .labels import FIRST_TEXT, NOTHING, Guard, Label, Labels, below
from .path_text import in_text, parts_of
from .scopes import Scope

_NAME_OF_A_FILE = re.compile(r"[\w.\-~]*[./][\w.\-/~]*")
"""Texts that may be the name of a file: two uses of the same text may be the same file."""


class ExpressionReader(CallReader):
    def _value(self, node: ast.expr | None, scope: Scope, guards: frozenset[Guard]) -> Labels:
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
                held = self._key(name) | self._value(base, scope, guards)
                if held or not words.FINDS.search(name):
                    return held
                return frozenset(Label(each.of, "found") for each in self._own_load(node, scope))
            case ast.Subscript(value=base, slice=index):
                if (variable := environment_name(scope.module, node)) is not None:
                    return self._environment.get(f"${variable}", NOTHING)
                if (number := argv_index(scope.module, node)) is not None:
                    return self._environment.get(f"$argv{number}", NOTHING)
                text = text_of(index)
                found = self._value(base, scope, guards)
                return found | (self._value(index, scope, guards) if text is None else self._key(text))
            case ast.Call():
                if (searched := argv_searched(node)) is not None:  # its value stands behind it
                    return self._environment.get(f"$argv{searched}", NOTHING)
                return self._call(node, scope, guards)
            case ast.Dict(keys=keys, values=held):
                for key, value in zip(keys, held, strict=True):
                    if (text := text_of(key)) is not None and constant(value) is True:
                        self._note_known(node, "", {text: value}, scope, guards)
                return NOTHING.union(*(self._value(each, scope, guards) for each in (*filter(None, keys), *held)))
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
            case ast.BinOp(left=left, op=ast.Div(), right=right):
                return below(self._value(left, scope, guards)) | self._value(right, scope, guards)
            case ast.JoinedStr() | ast.BinOp(op=ast.Add()) if any(isinstance(p, str) for p in parts_of(node)):
                parts = parts_of(node)
                given = [self._value(ast.Constant(p) if isinstance(p, str) else p, scope, guards) for p in parts]
                return NOTHING.union(*(in_text(parts, at, labels) for at, labels in enumerate(given)))
            case ast.BinOp(left=left, right=right):
                return self._value(left, scope, guards) | self._value(right, scope, guards)
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

    def _bind(self, target: ast.expr, value: ast.expr, labels: Labels, scope: Scope, guards: frozenset[Guard]) -> None:
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
