"""The trainer's file and the modules of its own project that it imports, as syntax trees. Bounded."""

import ast
import heapq
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from .launch_target import Target

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
Function = ast.FunctionDef | ast.AsyncFunctionDef


def dotted(node: ast.AST) -> str:
    """``a.b.c`` of a name or an attribute; a call or an index inside is left out. "" for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        before = dotted(node.value)
        return f"{before}.{node.attr}" if before else node.attr
    if isinstance(node, ast.Call):
        return dotted(node.func)
    if isinstance(node, ast.Subscript):
        return dotted(node.value)
    return ""


def last(name: str) -> str:
    """``torch.load`` → ``load``."""
    return name.rpartition(".")[2]


def called(call: ast.Call) -> str:
    return last(dotted(call.func))


def root_of(node: ast.AST) -> str:
    """The first name of ``a.b.c``; "" if it does not begin with one."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def own_name(node: ast.AST) -> str:
    """The last name of a variable, a field or a key (``cfg["resume"]``); "" for another expression."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.Subscript(slice=ast.Constant(value=str() as name)):
            return name
    return ""


def text_of(node: ast.AST | None) -> str | None:
    """A constant text; None for anything else."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def texts_in(node: ast.expr | None) -> str:
    if node is None:
        return ""
    parts = [text for each in ast.walk(node) if (text := text_of(each)) is not None]
    return " ".join(" ".join(parts).split())[:400]


def constant(node: ast.AST | None) -> Any:
    """The value of a literal; None for anything else."""
    if node is None:
        return None
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


def keyword(call: ast.Call, name: str | None) -> ast.expr | None:
    """The value of a keyword of a call, of ``**`` by None; None if it is not given."""
    return next((k.value for k in call.keywords if k.arg == name), None)


def parameters(function: Function | ast.Lambda) -> list[ast.arg]:
    given = function.args
    return [*given.posonlyargs, *given.args, *given.kwonlyargs]


def default_of(function: Function, name: str) -> ast.expr | None:
    """The default of a parameter; None without one."""
    given = function.args
    positional = [*given.posonlyargs, *given.args]
    for arg, value in zip(reversed(positional), reversed(given.defaults), strict=False):
        if arg.arg == name:
            return value
    for arg, default in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        if arg.arg == name:
            return default
    return None


def own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a module or function without those of the functions in it."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, FUNCTIONS):
            yield child
            yield from own_nodes(child)


MOST_FILES = 60
MOST_BYTES = 800 << 10
"""About a second of one core."""
LARGEST_BYTES = 600 << 10
"""A larger file is data."""
_FIRST = re.compile(r"resum|checkpoint|ckpt|train|arg|opt|conf|util|main|engine|load|save|state", re.IGNORECASE)
"""Names of files that are read before others of the same distance."""


Stamp = tuple[int, int] | None
"""Time of the last change in ns and size in bytes of a file; None if it is not there."""


class Module(msgspec.Struct, frozen=True, kw_only=True):
    """``shown``: its path for people. ``aliases``: local name → dotted name of what was imported. ``nodes``: its tree.

    ``calls``, ``functions``, ``classes``: those among the nodes.
    """

    path: Path
    shown: str
    text: str
    tree: ast.Module
    aliases: dict[str, str]
    nodes: list[ast.AST]
    calls: list[ast.Call]
    functions: list[Function]
    classes: list[ast.ClassDef]


class Project(msgspec.Struct, frozen=True, kw_only=True):
    """``modules``: the trainer's own file first. ``unread``: what could not be read, a clause each.

    ``looked_at``: files as they were before they were read, and the folders in which others were looked for.
    """

    modules: tuple[Module, ...]
    unread: tuple[str, ...] = ()
    looked_at: tuple[tuple[Path, Stamp], ...] = ()


def read_project(target: Target, cwd: Path, known: Mapping[Path, Module]) -> Project:
    """Read the file of a target and what it imports of the project, the nearest first. ``known``: read already."""
    queue, seen = [(0, False, 0, target.file)], {target.file}
    modules: list[Module] = []
    looked_at = [(folder, stamp_of(folder)) for folder in target.roots]
    unread: list[str] = []
    size = 0
    while queue:
        distance, _, _, path = heapq.heappop(queue)
        if len(modules) >= MOST_FILES or size > MOST_BYTES:
            unread.append(f"only the first {len(modules)} files were read")
            break
        looked_at += [(each, stamp_of(each)) for each in (path.parent, path)]
        module = known.get(path) or read_module(path, cwd, target.roots)
        if isinstance(module, str):
            unread.append(module)
            continue
        modules.append(module)
        size += len(module.text)
        for found in _imported(module, target):
            if found not in seen:
                seen.add(found)
                heapq.heappush(queue, (distance + 1, _FIRST.search(found.stem) is None, len(seen), found))
    return Project(modules=tuple(modules), unread=tuple(unread), looked_at=tuple(looked_at))


def stamp_of(path: Path) -> Stamp:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def read_module(path: Path, cwd: Path, roots: tuple[Path, ...]) -> Module | str:
    """One file; a clause if it cannot be read. Its path is shown from the first of these folders that it lies in."""
    shown = str(path)
    for root in (cwd, *roots):
        if path.is_relative_to(root):
            shown = str(path.relative_to(root))
            break
    try:
        if path.stat().st_size > LARGEST_BYTES:
            return f"{shown} is too large"
        data = path.read_bytes()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(data)
        text = data.decode("utf-8", "replace")
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return f"{shown} cannot be read ({type(error).__name__})"
    nodes = list(ast.walk(tree))
    return Module(
        path=path,
        shown=shown,
        text=text,
        tree=tree,
        aliases=_aliases(nodes),
        nodes=nodes,
        calls=[node for node in nodes if isinstance(node, ast.Call)],
        functions=[node for node in nodes if isinstance(node, FUNCTIONS)],
        classes=[node for node in nodes if isinstance(node, ast.ClassDef)],
    )


def _aliases(nodes: list[ast.AST]) -> dict[str, str]:
    found: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            for name in node.names:
                first = name.name.partition(".")[0]
                found[name.asname or first] = name.name if name.asname else first
        elif isinstance(node, ast.ImportFrom):
            before = "." * node.level + (node.module or "")
            for name in node.names:
                found[name.asname or name.name] = f"{before}.{name.name}"
    return found


def _imported(module: Module, target: Target) -> Iterator[Path]:
    for node in module.nodes:
        if isinstance(node, ast.Import):
            for name in node.names:
                yield from module_files(name.name, target.roots, target.package)
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                folder = module.path.parent
                for _ in range(node.level - 1):
                    folder = folder.parent
                base, package = node.module or "", ""
                roots: tuple[Path, ...] = (folder,)
            else:
                base, roots, package = node.module or "", target.roots, target.package
            if base:
                yield from module_files(base, roots, package)
            for name in node.names:
                yield from module_files(f"{base}.{name.name}".strip("."), roots, package)
        elif isinstance(node, ast.Call) and node.args and (text := text_of(node.args[0])) is not None:
            name_ = called(node)
            if name_ in {"import_module", "__import__"} and text.replace(".", "").isidentifier():
                yield from module_files(text, target.roots, target.package)
            elif name_ == "open" and text.endswith(".py"):  # exec(open("configurator.py").read())
                yield from [root / text for root in target.roots if (root / text).is_file()][:1]


def module_files(name: str, roots: tuple[Path, ...], package: str = "") -> Iterator[Path]:
    """The first file of a module. ``package``: only of this one, if it is given."""
    if package and name.partition(".")[0] != package:
        return
    relative = Path(*name.split("."))
    for path in (root / each for root in roots for each in (relative.with_suffix(".py"), relative / "__init__.py")):
        try:
            if path.is_file():
                yield path
                return
        except (OSError, ValueError):
            return


def resolved(module: Module, node: ast.AST) -> str:
    """The dotted name of an expression with the import behind its first name (``CLI`` → ``jsonargparse.CLI``)."""
    name = dotted(node)
    first, dot, rest = name.partition(".")
    return f"{module.aliases.get(first, first)}{dot}{rest}"


class Scope(msgspec.Struct):
    """A function or a module. ``owner``: the class that it is in."""

    name: str
    module: Module
    node: Function | ast.Module
    parent: "Scope | None" = None
    owner: str = ""


class Scopes:
    """All functions and modules of a project. ``functions``: by name. ``classes``: constructors by name."""

    def __init__(self, project: Project) -> None:
        self.functions: dict[str, list[Scope]] = {}
        self.classes: dict[str, list[Scope]] = {}
        self.all: list[Scope] = []
        for module in project.modules:
            top = Scope("<module>", module, module.tree)
            self.all.append(top)
            self._collect_in(module.tree, top, "")

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


# --- the statements of a function or module as a list of steps, each with the tests and loops around it ---

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
