"""The one reader of a trainer's source: what its script imports, its defaults, its options, how it resumes.

Each is read once and kept while no file that was read for it changes.
"""

import os
import re
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from ..model.launch.recognition import Imported, OwnEnd, SourceFacts
from .config_options import file_options, override_options
from .declared_whole import declares_all
from .flow.scopes import Scopes
from .known_values import KnownValues, set_options
from .launch_target import Target, find_target
from .options.all_options import options_of
from .options.option import Option
from .options.subcommands import BEFORE, Subcommands, subcommands_of
from .project_modules import Module, Project, Stamp, read_module, read_project, stamp_of
from .resume_finding import Finding, find_resume
from .script_values import Default, Number, defaults_in, imported_by, numbers_in, texts_in_module
from .start_deletes import StartDeletes, start_deletes
from .start_needs import NeededImport, goes_on_without, installs_packages, needed_imports, own_ends

FETCHES = re.compile(r"download|urlretrieve|load_dataset|\bgdown\b|\bwget\b|kaggle", re.IGNORECASE)
PATHS = re.compile(r"sys\.path\b|addsitedir|sys\.modules|sys\.meta_path|pkgutil\.extend_path")
MOST_SOURCES = 16
LARGEST_KEPT = 256 << 10
"""Syntax trees of more source, in characters, are made anew instead of kept: one takes about 35 bytes a character."""

_Said = TypeVar("_Said")


class TrainerSource:
    """The source behind one command. ``target``: the file that it runs."""

    def __init__(self, target: Target, cwd: Path) -> None:
        self.target = target
        self._cwd = cwd
        self._stamps: dict[Path, Stamp] = {}
        self._findings: dict[tuple[tuple[tuple[str, Any], ...], str], Finding] = {}
        self._scripts: dict[Path, Module] = {}
        self._kept: Project | None = None
        self._declared: tuple[tuple[Option, ...], bool] | None = None

    @property
    def is_current(self) -> bool:
        """Whether every file that was read is as it was then."""
        return all(stamp_of(path) == before for path, before in self._stamps.items())

    def forget_trees(self) -> None:
        """Let the syntax trees go; what was told of them stays."""
        self._kept = None
        self._scripts.clear()

    @cached_property
    def imported(self) -> tuple[Imported, ...]:
        """What the script itself uses. Nothing of an installed program: its imports are those of its framework."""
        script = None if self.target.package else self._module(self.target.file, self.target.roots)
        return () if script is None else tuple(imported_by(script))

    @cached_property
    def defaults(self) -> tuple[Default, ...]:
        """Texts that the script has for its settings, then those of its project's options.

        A further Python file in the command is a config that is run after the script's own values (nanoGPT).
        """
        if self.target.package:
            return ()
        words = [word for word in self.target.args if word.endswith(".py") and not word.startswith("-")]
        files = (*(self._cwd / word for word in reversed(words)), self.target.file)
        scripts = [script for file in files if (script := self._module(file, (file.parent,))) is not None]
        own = [default for script in scripts for default in defaults_in(script)]
        declared = (option for option in self.options if isinstance(option.default, str))
        return (*own, *(Default(o.name.lstrip("-"), o.default, f"{o.file}:{o.line}") for o in declared))

    @cached_property
    def numbers(self) -> tuple[Number, ...]:
        """Whole numbers that the script has for its settings; further Python files of the command first."""
        if self.target.package:
            return ()
        words = [word for word in self.target.args if word.endswith(".py") and not word.startswith("-")]
        files = (*(self._cwd / word for word in reversed(words)), self.target.file)
        scripts = [script for file in files if (script := self._module(file, (file.parent,))) is not None]
        declared = (option for option in self.options if type(option.default) is int and option.default > 0)
        options = (Number(o.name.lstrip("-"), o.default, f"{o.file}:{o.line}") for o in declared)
        return (*options, *(number for script in scripts for number in numbers_in(script)))

    @property
    def options(self) -> tuple[Option, ...]:
        """The options that the project declares for the subcommand that is run, if there are subcommands.

        Those of a source that cannot be followed are not told.
        """
        return self._declared_now[0]

    @property
    def declares_all(self) -> bool:
        """Whether ``options`` are all that it takes."""
        return self._declared_now[1]

    @property
    def _declared_now(self) -> tuple[tuple[Option, ...], bool]:
        nothing: tuple[tuple[Option, ...], bool] = ((), False)
        return self._declared or self._asked(self._declares, nothing)

    def _declares(self, project: Project, subcommands: Subcommands | None = None) -> tuple[tuple[Option, ...], bool]:
        if self._declared is None:
            subcommands = subcommands_of(project) if subcommands is None else subcommands
            given = {"", BEFORE, *self.target.args}
            found = [option for option in options_of(project, subcommands) if option.after in given]
            known = not subcommands.names or bool(subcommands.run_by(self.target.args))
            options = (msgspec.structs.replace(o, after=o.after if o.after == BEFORE else "") for o in found)
            self._declared = (tuple(options), known and declares_all(project))
        return self._declared

    def option(self, name: str) -> Option | None:
        """The option that is written so, or begins so: argparse takes the beginning of a name if it is the only one."""
        names = [(each, written) for each in self.options for written in (each.aliases or (each.name,))]
        exact = [each for each, written in names if name and written == name]
        begun = [each for each, written in names if name.startswith("--") and written.startswith(name)]
        return exact[0] if exact else begun[0] if len(begun) == 1 else None

    def resume(self, settings: Mapping[str, Any], config: str = "") -> Finding:
        """How it resumes. ``settings``: those of the file ``config`` that its command names, by dotted key."""
        key = (tuple(settings.items()), config)
        if key not in self._findings:
            too_deep = Finding(unsure=("its source is nested too deeply to be followed",), target=self.target)
            self._findings[key] = self._asked(lambda project: self._found(project, settings, config), too_deep)
        return self._findings[key]

    def deletes(
        self, args: tuple[str, ...], environment: Mapping[str, str], settings: Mapping[str, Any], output: str | None
    ) -> StartDeletes:
        """What a start with these words deletes. ``settings``: as for ``resume``; ``output``: the output folder."""
        config = {key.rpartition(".")[2]: value for key, value in settings.items()}

        def told(project: Project) -> StartDeletes:
            declared = (*self.options, *override_options(project), *file_options(project, dict(settings), ""))
            return start_deletes(project, declared, args, environment, config=config, output=output, cwd=str(self._cwd))

        return self._asked(told, StartDeletes())

    @cached_property
    def texts(self) -> tuple[tuple[str, str], ...]:
        """All texts that the project has written out, with their places: paths and names of variables among them."""

        def told(project: Project) -> tuple[tuple[str, str], ...]:
            return tuple(text for module in project.modules for text in texts_in_module(module))

        return self._asked(told, ())

    def saves(self, environment: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
        """The paths that the project saves to, with ``UNKNOWN`` for what cannot be told, and their places."""

        def told(project: Project) -> tuple[tuple[str, str], ...]:
            return tuple(KnownValues(Scopes(project, (), ()), self.options, given).saves())

        given = set_options(self.options, self.target.args, environment)
        return self._asked(told, ())

    @cached_property
    def fetches_data(self) -> bool:
        """Whether the project speaks of a download: then a folder of data may be made by the script itself."""
        return self._asked(lambda project: any(FETCHES.search(module.text) for module in project.modules), False)

    @cached_property
    def needs(self) -> tuple[NeededImport, ...]:
        """The packages without which it cannot start; none of an installed program."""
        if self.target.package:
            return ()
        return self._asked(lambda project: needed_imports(project, self.target), ())

    @cached_property
    def finds_modules_itself(self) -> bool:
        """Whether it changes where Python looks for modules, or installs packages."""

        def told(project: Project) -> bool:
            return any(PATHS.search(module.text) or installs_packages(module) for module in project.modules)

        return self._asked(told, True)

    @cached_property
    def own_ends(self) -> tuple[OwnEnd, ...]:
        """The texts with which it ends itself; none of an installed program."""
        return () if self.target.package else self._asked(own_ends, ())

    def begins_without(self, option: str) -> str | None:
        """Where it asks whether the path given by this option exists, and goes on without it (``train.py:41``)."""
        name = option.lstrip("-").replace("-", "_").rpartition(".")[2]
        return self._asked(lambda project: goes_on_without(project.modules, name), None)

    def _found(self, project: Project, settings: Mapping[str, Any], config: str) -> Finding:
        subcommands = subcommands_of(project)
        declared, closed = self._declares(project, subcommands)
        options = [*declared, *override_options(project)]
        if config:
            options += file_options(project, dict(settings), config)
        chosen = subcommands.run_by(self.target.args)
        options += [msgspec.structs.replace(dest, default=chosen) for dest in subcommands.dests if chosen]
        others = {function for function, name in subcommands.of_function.items() if chosen and name != chosen}
        return find_resume(project, options, self.target, others, closed=closed)

    def _asked(self, ask: Callable[[Project], _Said], otherwise: _Said) -> _Said:
        try:
            return ask(self._project())
        except RecursionError:
            return otherwise

    def _project(self) -> Project:
        if self._kept is not None:
            return self._kept
        project = read_project(self.target, self._cwd, self._scripts)
        self._stamps = dict(reversed(project.looked_at)) | self._stamps
        if sum(len(module.text) for module in project.modules) <= LARGEST_KEPT:
            self._kept = project
        return project

    def _module(self, file: Path, roots: tuple[Path, ...]) -> Module | None:
        if file not in self._scripts:
            self._stamps.setdefault(file, stamp_of(file))
            found = read_module(file, self._cwd, roots)
            if isinstance(found, str):
                return None
            self._scripts[file] = found
        return self._scripts[file]


_sources: OrderedDict[tuple[Target, Path], TrainerSource] = OrderedDict()


def read_source(command: Sequence[str], cwd: str, env: Mapping[str, str] | None = None) -> TrainerSource | str:
    """The source behind a command; a sentence if it cannot be told. ``env``: what the run adds to the environment."""
    folder = Path(cwd)
    target = find_target(command, folder, {**os.environ, **(env or {})})
    if isinstance(target, str):
        return target
    key = (target, folder)
    source = _sources.pop(key, None)
    if source is None or not source.is_current:
        source = TrainerSource(target, folder)
    for other in list(_sources.values()):  # a sensor asks, too
        other.forget_trees()
    _sources[key] = source
    while len(_sources) > MOST_SOURCES:
        _sources.popitem(last=False)
    return source


def source_facts(command: Sequence[str], cwd: str) -> SourceFacts:
    """The imports of the script that the command runs, and where it lies. Empty if it cannot be read."""
    source = read_source(command, cwd)
    if isinstance(source, str) or source.target.package:
        return SourceFacts(folders=(cwd,))
    folders = tuple(dict.fromkeys((str(source.target.file.parent), cwd)))
    return SourceFacts(imported=source.imported, folders=folders)
