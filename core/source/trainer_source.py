"""The one reader of a trainer's source: what its script imports, its defaults, its options, how it resumes.

Each is read once and kept while no file that was read for it changes.
"""

import ast
import os
import re
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from ..model.preset import Imported, OwnEnd, SourceFacts
from ..model.run import RunSpec
from .launch_target import Target, find_target
from .options import Option, file_options, options_of, override_options
from .parsers import BEFORE, Subcommands, declares_all, subcommands_of
from .places import opened, saved_below, saves
from .project import (
    FUNCTIONS,
    Module,
    Project,
    Stamp,
    called,
    constant,
    dotted,
    keyword,
    own_name,
    read_module,
    read_project,
    stamp_of,
    text_of,
)
from .resume_finding import Finding, find_resume
from .shell_text import assigned
from .starting import StartDeletes, finds_modules_itself, goes_on_without, needed_imports, own_ends, start_deletes
from .values import UNKNOWN, KnownValues, set_options

FETCHES = re.compile(r"download|urlretrieve|load_dataset|\bgdown\b|\bwget\b|kaggle", re.IGNORECASE)
TRAINS = ("backward", "apply_gradients", "value_and_grad", "minimize", "train_on_batch", "GradientTape", "fit", "train")
MOST_SOURCES = 16

LONGEST = 300
"""Characters of a text that may be a path or a name."""


class Default(msgspec.Struct, frozen=True):
    """A text, or a whole number above 0, that the script has for a setting. ``name`` as it is written.

    ``place``: ``train.py:3``.
    """

    name: str
    value: Any
    place: str


_Said = TypeVar("_Said")


class TrainerSource:
    """The source behind one command. ``target``: the file that it runs.

    ``unread``: why there is none, "" = it is read; then every question has the answer of who knows nothing.
    """

    def __init__(self, target: Target, cwd: Path, unread: str = "") -> None:
        self.target, self.unread = target, unread
        self._cwd = cwd
        self._stamps: dict[Path, Stamp] = {}
        self._findings: dict[tuple[tuple[tuple[str, Any], ...], str], Finding] = {}

    @property
    def is_own(self) -> bool:
        return not self.unread and not self.target.package

    @property
    def is_current(self) -> bool:
        return all(stamp_of(path) == before for path, before in self._stamps.items())

    @cached_property
    def imported(self) -> tuple[Imported, ...]:
        """What the script itself uses. Nothing of an installed program: its imports are those of its framework."""
        return tuple(_imported_by(self._script)) if self.is_own and self._script is not None else ()

    @cached_property
    def defaults(self) -> tuple[Default, ...]:
        own = (default for script in self._own_scripts() for default in _defaults_in(script))
        return (*own, *self._of_options(lambda value: isinstance(value, str)))

    @cached_property
    def numbers(self) -> tuple[Default, ...]:
        """Whole numbers that the script has for its settings; those of its project's options first."""
        return (*self._of_options(_is_count), *(number for each in self._own_scripts() for number in _numbers_in(each)))

    @cached_property
    def number_of(self) -> Mapping[str, Default]:
        """The same by name in lower case with ``_``; the first of a name counts."""
        return {number.name.lower().replace("-", "_"): number for number in reversed(self.numbers)}

    def _of_options(self, fits: Callable[[Any], bool]) -> Iterator[Default]:
        for option in self.options if self.is_own else ():
            if fits(option.default):
                yield Default(option.name.lstrip("-"), option.default, f"{option.file}:{option.line}")

    def _own_scripts(self) -> Iterator[Module]:
        """The script itself; before it further Python files of the command: configs that are run after it (nanoGPT).

        None of an installed program.
        """
        words_ = [word for word in self.target.args if word.endswith(".py") and not word.startswith("-")]
        for file in (self._cwd / word for word in reversed(words_ if self.is_own else ())):
            self._stamps.setdefault(file, stamp_of(file))
            if isinstance(script := read_module(file, self._cwd, (file.parent,)), Module):
                yield script
        if self.is_own and self._script is not None:
            yield self._script

    @property
    def _script(self) -> Module | None:
        first: Module | None = self._asked(lambda read: next(iter(read.modules), None), None)
        return None if first is None or first.path != self.target.file else first

    @property
    def options(self) -> tuple[Option, ...]:
        """The options that the project declares for the subcommand that is run, if there are subcommands.

        Those of a source that cannot be followed are not told.
        """
        return self._declared[0]

    @property
    def declares_all(self) -> bool:
        """Whether ``options`` are all that it takes."""
        return self._declared[1]

    @cached_property
    def _declared(self) -> tuple[tuple[Option, ...], bool]:
        nothing: tuple[tuple[Option, ...], bool] = ((), False)
        return self._asked(lambda read: read.declared, nothing)

    def option(self, name: str) -> Option | None:
        """The option that is written so, or begins so: argparse takes the beginning of a name if it is the only one."""
        names = [(each, written) for each in self.options for written in (each.aliases or (each.name,))]
        exact = [each for each, written in names if name and written == name]
        begun = [each for each, written in names if name.startswith("--") and written.startswith(name)]
        return exact[0] if exact else begun[0] if len(begun) == 1 else None

    def said_of(self, name: str) -> str:
        """The help of an option that is a number, and what is counted by it (``epoch % every``)."""
        nodes = self._asked(lambda read: [node for each in read.modules for node in each.nodes], list[ast.AST]())
        rests = (n for n in nodes if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mod))
        terms = (ast.unparse(n.left) for n in rests if own_name(n.right) == name)
        return " ".join([*terms, *(each.help for each in self.options if each.dest == name)])

    @cached_property
    def cut(self) -> bool:
        """Whether not all of its source was read."""
        return self._asked(lambda read: bool(read.project.unread), True)

    def resume(self, settings: Mapping[str, Any], config: str = "") -> Finding:
        """How it resumes. ``settings``: those of the file ``config`` that its command names, by dotted key."""
        key = (tuple(settings.items()), config)
        if key not in self._findings:
            why = self.unread or "its source is nested too deeply to be followed"
            nothing = Finding(unsure=(why,))
            self._findings[key] = self._asked(lambda read: self._found(read, settings, config), nothing)
        return self._findings[key]

    def deletes(
        self, args: tuple[str, ...], environment: Mapping[str, str], settings: Mapping[str, Any], output: str | None
    ) -> StartDeletes:
        """What a start with these words deletes. ``settings``: as for ``resume``; ``output``: the output folder."""
        config = _by_last_key(settings)

        def told(read: _Reading) -> StartDeletes:
            keys = (*override_options(read.project), *file_options(read.project, settings, ""))
            declared, cwd = (*self.options, *keys), str(self._cwd)
            given = {**environment, **dict(self.target.env)}
            return start_deletes(read.values, declared, args, given, config=config, output=output, cwd=cwd)

        return self._asked(told, StartDeletes())

    @cached_property
    def texts(self) -> tuple[tuple[str, str], ...]:
        """All texts that the project has written out, with their places: paths and names of variables among them."""
        return self._asked(lambda read: tuple(text for each in read.modules for text in _texts_in(each)), ())

    def saves(self, environment: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
        """The paths that the project saves to, with ``UNKNOWN`` for what cannot be told, and their places."""

        def told(read: _Reading) -> tuple[tuple[str, str], ...]:
            return tuple((path, site.place) for path, site in saves(self._given(read, environment, {})))

        return self._asked(told, ())

    def saved_below(
        self, environment: Mapping[str, str], settings: Mapping[str, Any], *, told_only: bool
    ) -> tuple[str, str] | None:
        """The folder that the project saves the state of a training to, and where it says so; None if it is not sure.

        ``settings``: as for ``resume``. ``told_only``: as in ``places.saved_below``.
        """
        if not self.is_own:
            return None
        return self._asked(
            lambda read: saved_below(self._given(read, environment, settings), told_only=told_only), None
        )

    def opened(self, environment: Mapping[str, str]) -> str | None:
        """The one file of settings that it opens by itself, relative to the working folder; None if there is none."""
        nothing: tuple[str, ...] = ()
        found = self._asked(lambda read: opened(self._given(read, environment, {})), nothing)
        found = tuple(path for path in found if (self._cwd / path).is_file())
        found = tuple(path for path in found if not path.endswith(".json")) or found  # others may be data
        return found[0] if len(found) == 1 else None

    def _given(self, read: "_Reading", environment: Mapping[str, str], settings: Mapping[str, Any]) -> KnownValues:
        """What is known with the trainer's words and its config; of what both set, which one counts is not known."""
        given = set_options(self.options, self.target.args, {**environment, **dict(self.target.env)})
        config = _by_last_key(settings)
        both = {key: UNKNOWN + key + UNKNOWN for key in given.keys() & config.keys() if given[key] != config[key]}
        return read.values.given(self.options, {**given, **config, **both})

    @cached_property
    def fetches_data(self) -> bool:
        """Whether the project speaks of a download: then a folder of data may be made by the script itself."""
        return self._asked(lambda read: any(FETCHES.search(module.text) for module in read.modules), False)

    @cached_property
    def trains(self) -> bool:
        """Whether it surely comes to the loop of a training, its own or a library's; ``model.train()`` is a mode."""

        def told(read: _Reading) -> bool:
            chosen = read.subcommands.run_by(self.target.args)
            values = self._given(read, {}, dict.fromkeys(read.subcommands.dests if chosen else (), chosen))
            others = (module.tree for module in read.modules if module.path != self.target.file)
            values.only = {(id(tree), "__name__"): ast.Constant("") for tree in others}
            calls = [(dotted(call.node), call) for name in TRAINS for call in values.calls.get(name, ())]
            modes = {dotted(call.node).removesuffix("eval") + "train" for call in values.calls.get("eval", ())}
            found = (call for name, call in calls if name not in {"fit", "train", *modes})
            return any(values.reach(call, lambda at: isinstance(at.node, FUNCTIONS))[0] for call in found)

        return self._asked(told, False)

    @cached_property
    def needs(self) -> tuple[Imported, ...]:
        """The packages without which it cannot start; none of an installed program."""
        return self._asked(lambda read: needed_imports(read.project, self.target), ()) if self.is_own else ()

    @cached_property
    def finds_modules_itself(self) -> bool:
        return self._asked(lambda read: finds_modules_itself(read.project), True)

    @cached_property
    def own_ends(self) -> tuple[OwnEnd, ...]:
        """The texts with which it ends itself; none of an installed program."""
        return self._asked(lambda read: own_ends(read.project), ()) if self.is_own else ()

    def begins_without(self, option: str) -> str | None:
        """Where it asks whether the path given by this option exists, and goes on without it (``train.py:41``)."""
        name = option.lstrip("-").replace("-", "_").rpartition(".")[2]
        return self._asked(lambda read: goes_on_without(read.project, name), None)

    def _found(self, read: "_Reading", settings: Mapping[str, Any], config: str) -> Finding:
        (declared, closed), subcommands = read.declared, read.subcommands
        options = [*declared, *override_options(read.project)]
        if config:
            options += file_options(read.project, settings, config)
        chosen = subcommands.run_by(self.target.args)
        known = dict.fromkeys(subcommands.dests, chosen) if chosen else {}
        others = {function for function, name in subcommands.of_function.items() if chosen and name != chosen}
        return find_resume(read.values, options, self.target.args, known, others, closed=closed)

    def _asked(self, ask: Callable[["_Reading"], _Said], otherwise: _Said) -> _Said:
        try:
            return otherwise if self.unread else ask(self._read())
        except RecursionError:
            return otherwise

    def _read(self) -> "_Reading":
        """The syntax trees of the project; only those that were asked for last are kept."""
        global _newest  # noqa: PLW0603  trees are large: of all sources one is kept
        if _newest is None or _newest[0] is not self:
            other, kept = _newest or (None, None)
            known: dict[Path, Module] = {}
            if other is not None and kept is not None and other.is_current and other._cwd == self._cwd:  # noqa: SLF001
                known = {module.path: module for module in kept.modules}
            project = read_project(self.target, self._cwd, known)
            self._stamps = dict(reversed(project.looked_at)) | self._stamps
            _newest = self, _Reading(project, self.target.args)
        return _newest[1]


class _Reading:
    def __init__(self, project: Project, args: tuple[str, ...]) -> None:
        self.project = project
        self.modules = project.modules
        self._args = args

    @cached_property
    def values(self) -> KnownValues:
        return KnownValues(self.project)

    @cached_property
    def subcommands(self) -> Subcommands:
        return subcommands_of(self.project)

    @cached_property
    def declared(self) -> tuple[tuple[Option, ...], bool]:
        of_all = options_of(self.project, self.subcommands)
        found = [option for option in of_all if option.after in {"", BEFORE, *self._args}]
        known = not self.subcommands.names or bool(self.subcommands.run_by(self._args))
        options = (msgspec.structs.replace(o, after=o.after if o.after == BEFORE else "") for o in found)
        return tuple(options), known and declares_all(self.project)


def _by_last_key(settings: Mapping[str, Any]) -> dict[str, Any]:
    """``data.clean`` and ``train.clean`` are both ``clean``: unknown if they differ."""
    found: dict[str, Any] = {}
    for key, value in settings.items():
        name = key.rpartition(".")[2]
        found[name] = value if found.get(name, value) == value else f"{UNKNOWN}{name}{UNKNOWN}"
    return found


# --- what a script itself says ---


def _imported_by(module: Module) -> Iterator[Imported]:
    """The modules that it imports, the names of them, and the attributes of those that it uses."""
    for node in module.nodes:
        place = f"{module.path.name}:{getattr(node, 'lineno', 0)}"
        match node:
            case ast.Import(names=names):
                yield from (Imported(name.name, place) for name in names)
            case ast.ImportFrom(module=str() as origin, names=names, level=0):
                yield from (Imported(f"{origin}.{name.name}", place) for name in names)
    for node in module.nodes:
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if module.aliases.get(name, ".")[0] != ".":
                yield Imported(f"{module.aliases[name]}.{attr}", f"{module.path.name}:{node.lineno}")


def _set_by(node: ast.AST) -> list[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _defaults_in(module: Module) -> Iterator[Default]:
    """Texts: defaults of its options, then names that its top level sets once, and fields of its classes."""
    shown = module.path.name
    for call in module.calls:
        value = _written_out(keyword(call, "default"))
        names = [n for arg in call.args if (n := _written_out(arg)) is not None and n.startswith("--")]
        if names and value is not None:
            yield Default(names[0].lstrip("-"), value, f"{shown}:{call.lineno}")
    body, anew = module.tree.body, _set_anew(module)
    for node in (*body, *(n for each in body if isinstance(each, ast.ClassDef) for n in each.body)):
        if isinstance(node, ast.Assign | ast.AnnAssign) and (value := _written_out(node.value)) is not None:
            once = (name for name in _set_by(node) if node not in body or name not in anew)
            yield from (Default(name, value, f"{shown}:{node.lineno}") for name in once)


def _set_anew(module: Module) -> set[str]:
    """Names that the top level sets at several places, also under a condition, or that a function sets."""
    found: Counter[str] = Counter(n for node in module.nodes if isinstance(node, ast.Global) for n in node.names * 2)
    waiting: list[ast.AST] = list(module.tree.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found[node.id] += 1
        if not isinstance(node, (*FUNCTIONS, ast.ClassDef, ast.Lambda)):
            waiting.extend(ast.iter_child_nodes(node))
    return {name for name, times in found.items() if times > 1}


def _numbers_in(module: Module) -> Iterator[Default]:
    """Those of names that are set at one place only (``EPOCHS = 50``)."""
    found: dict[str, list[tuple[Any, int]]] = {}
    for node in module.nodes:
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            for name in _set_by(node):
                found.setdefault(name, []).append((constant(node.value), node.lineno))
    for name, [(number, line), *further] in found.items():
        if not further and _is_count(number):
            yield Default(name, number, f"{module.path.name}:{line}")


def _is_count(value: Any) -> bool:
    return type(value) is int and value > 0


def _texts_in(module: Module) -> Iterator[tuple[str, str]]:
    """All texts that are written out, joined ones as a whole, with their places; ``{`` ends one with a placeholder."""
    for node in module.nodes:
        if isinstance(node, ast.JoinedStr):
            if node.values and (first := text_of(node.values[0])) is not None:
                yield f"{first}{{", f"{module.shown}:{node.lineno}"
        elif isinstance(node, ast.Constant | ast.BinOp | ast.Call):
            text = _written_out(node)
            if text is not None and len(text) <= LONGEST:
                yield text, f"{module.shown}:{node.lineno}"


def _written_out(node: ast.AST | None) -> str | None:
    """A text that is written out: ``"out"``, ``Path("out")``, ``field(default="out")``, ``os.path.join("a", "b")``."""
    match node:
        case ast.Constant(value=str() as text):
            return text
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            parts = [_written_out(left), _written_out(right)]
        case ast.Call(args=args) if called(node) in {"field", "Field", "Option", "Argument"}:
            return _written_out(keyword(node, "default") or next(iter(args), None))
        case ast.Call(args=args) if called(node) in {"Path", "join", "abspath", "expanduser", "resolve"} and args:
            parts = [_written_out(arg) for arg in args]
        case _:
            return None
    return None if None in parts else "/".join(map(str, parts))


_newest: tuple[TrainerSource, _Reading] | None = None
_sources: OrderedDict[tuple[Target, Path], TrainerSource] = OrderedDict()


def source_of(spec: RunSpec) -> TrainerSource:
    return read_source(spec.command, spec.cwd, spec.env)


def read_source(command: Sequence[str], cwd: str, env: Mapping[str, str] | None = None) -> TrainerSource:
    """The source behind a command. ``env``: what the run adds to the environment."""
    folder = Path(cwd)
    own = assigned(tuple(command))
    target = find_target(command, folder, {**os.environ, **(env or {}), **own})
    if isinstance(target, str):
        return TrainerSource(Target(file=Path(), roots=(), args=tuple(command), place="nowhere"), folder, target)
    target = msgspec.structs.replace(target, env=(*own.items(), *target.env))
    source = _sources.pop((target, folder), None)
    if source is None or not source.is_current:
        source = TrainerSource(target, folder)
    _sources[target, folder] = source
    while len(_sources) > MOST_SOURCES:
        _sources.popitem(last=False)
    return source


def source_facts(command: Sequence[str], cwd: str) -> SourceFacts:
    """The imports of the script that the command runs, and where it lies. Empty if it cannot be read."""
    source = read_source(command, cwd)
    folders = (str(source.target.file.parent), cwd) if source.is_own else (cwd,)
    return SourceFacts(imported=source.imported, folders=tuple(dict.fromkeys(folders)))
