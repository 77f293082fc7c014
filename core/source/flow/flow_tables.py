"""The tables of the flow: what each name, attribute and call is known to hold, and what was noted."""

import ast
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from typing import Any

from .. import words
from ..known_values import KnownValues
from ..options.option import Option
from ..project_modules import Project
from .call_names import KNOWN_WAYS
from .labels import NOTHING, Event, Guard, Label, Labels
from .scopes import Scope, Scopes

FEW_OPTIONS = 40
"""A trainer with more has options of all kinds, and only names tell which of them are about a resume."""


class FlowTables(ABC):
    """What is known so far about the values of one project; each pass adds to it. ``read``: destinations that it reads.

    ``events``: all that was seen. ``savers``: what calls that save are called on.
    """

    def __init__(self, project: Project, options: Sequence[Option], others: Collection[int]) -> None:
        self.options = list(options)
        self.events: dict[tuple[str, int, int, str], Event] = {}
        self.read: set[str] = set()
        self.savers: set[str] = set()
        scopes = Scopes(project, {option.dest for option in options if words.RESUME.search(option.name)}, others)
        self._scopes = scopes.relevant
        self._functions = scopes.functions
        self._classes = scopes.classes
        self._project = project
        self._variables: dict[tuple[int, str], Labels] = {}
        self._attributes: dict[str, Labels] = {}
        self._returned: dict[int, Labels] = {}
        self._called_under: dict[int, frozenset[Guard]] = {}
        self._unguarded: set[int] = set()
        self._loads: dict[tuple[str, int, int], int] = {}
        self._texts: dict[str, int] = {}
        self._written: set[int] = set()
        self._changed = False
        self._noted: set[tuple[str, int, int, str]] = set()
        self._seeds: dict[str, Labels] = {}
        self._environment: dict[str, Labels] = {}
        number = sum(option.kind != "switch" for option in options)
        self._telling = [_tells(option, number) for option in options]
        self._values = KnownValues(scopes, options, {})
        self._valued: dict[int, Any] = {}
        self._switches: dict[tuple[str, str, int], int] = {}
        """Values that the source sets itself and tests; from ``_settled`` on also those that cannot be seen."""
        self._settled = False
        roots = {name.partition(".")[0] for module in project.modules for name in module.aliases.values()}
        self._known_ways = [way for way in KNOWN_WAYS if way.library in roots]

    @abstractmethod
    def _value(self, node: ast.expr | None, scope: Scope, guards: frozenset[Guard]) -> Labels:
        """The labels of an expression."""

    def _chosen(self, guards: frozenset[Guard], value: ast.expr) -> Labels:
        """What is set only if an option is given is chosen by it; to set it to nothing or a number chooses nothing."""
        if (isinstance(value, ast.Constant) and not isinstance(value.value, str)) or not guards:
            return NOTHING
        return frozenset(Label(g.of, "when", g.value if g.on else "-") for g in guards if self._telling[g.of])

    def _add_variable(self, scope: Scope, name: str, labels: Labels) -> None:
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
        scope: Scope,
        called: str,
        receiver: str = "",
    ) -> None:
        if labels:
            self._note(kind, labels, guards, node, scope, called, receiver)
        if kind == "save" and not {each.of for each in labels} <= self._written:
            self._written |= {each.of for each in labels}
            self._changed = True

    def _own_load(self, node: ast.expr, scope: Scope) -> Labels:
        """The label of a load that no option feeds, or of what an object found (``manager.latest_checkpoint``)."""
        key = (str(scope.module.path), node.lineno, node.col_offset)
        number = self._loads.setdefault(key, -1 - len(self._loads))
        return frozenset({Label(number, "path")})

    def _note(  # noqa: PLR0917
        self,
        kind: str,
        labels: Labels,
        guards: frozenset[Guard],
        node: ast.AST,
        scope: Scope,
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
        again = before is not None and key in self._noted
        self._noted.add(key)
        self.events[key] = Event(
            kind=kind, labels=labels, guards=guards & before.guards or guards if before and again else guards,
            module=scope.module.shown, line=line, called=called, receiver=receiver, text=texts,
        )  # fmt: skip


def _tells(option: Option, number: int) -> bool:
    """Whether a test of the option may decide about a resume; with few options, that of any flag may."""
    if option.kind == "switch":
        return True
    text = f"{option.name} {option.help} {' '.join(option.choices)}"
    if words.RESUME.search(text) or words.CHECKPOINT.search(option.name):
        return True
    if option.takes in {"flag", "truth"}:
        return number <= FEW_OPTIONS
    return option.takes == "value" and not option.default and number <= FEW_OPTIONS
