"""A project: its trainwatch.toml, checked as a whole, with the origin of each value."""

from collections.abc import Collection
from pathlib import Path
from typing import Any, Literal

import msgspec

from ..model.settings import Profiles, Settings
from .bounds import BOUNDS, check_order
from .document import Document
from .hosts import read_hosts
from .location import FILE_NAME, find_project
from .problem import ConfigError, Problem, UnknownRun, did_you_mean, display_path
from .run_section import RunSection, RunTable, read_run
from .toml_lines import KeyPath


class Origin(msgspec.Struct, frozen=True):
    """Origin of a value. ``str``: ``default``, ``trainwatch.toml:14`` or ``--interval``."""

    kind: Literal["default", "file", "command line"]
    where: str = "default"

    def __str__(self) -> str:
        return self.where


class Project(msgspec.Struct, frozen=True, kw_only=True):
    """A whole trainwatch.toml. ``provenance``: dotted key (``watch.interval_s``, ``run.command``) → origin."""

    path: Path
    runs: dict[str, RunSection]
    settings: Settings
    provenance: dict[str, Origin]

    def run(self, name: str | None = None) -> RunSection:
        """Return the run of that name, or the only one. Raises ConfigError (UnknownRun) that names those that exist."""
        where = display_path(self.path)
        if name is None:
            if len(self.runs) == 1:
                return next(iter(self.runs.values()))
            raise ConfigError([Problem(where, None, f"which run? there are: {', '.join(self.runs)}; name one of them")])
        if name not in self.runs:
            raise UnknownRun([Problem(where, None, f'no run "{name}"{did_you_mean(name, self.runs)}')])
        return self.runs[name]


def load_project(
    path: Path, *, profiles: Collection[str] | None = None, presets: Collection[str] | None = None
) -> Project:
    """Read and check a trainwatch.toml. Relative paths in it start at its folder.

    ``profiles``, ``presets``: the names that exist; None = not checked. Raises ConfigError with every problem of the
    file at once.
    """
    path = path.absolute()
    document = Document.read(path)
    sections = _sections()
    values: dict[str, Any] = {}
    read: list[RunSection | None] = []
    for key, value in document.data.items():
        if key in sections:
            table = document.table((key,), value)
            elsewhere = _elsewhere(key)
            good = document.struct_values((key,), table, sections[key], rules=BOUNDS.get(key), elsewhere=elsewhere)
            values[key] = sections[key](**good)
        elif key == "run":
            name = path.parent.name
            read.append(read_run(document, ("run",), value, name, presets=presets, elsewhere=_elsewhere("run")))
        elif key == "runs":
            for name, entry in document.table(("runs",), value).items():
                at = ("runs", name)
                read.append(read_run(document, at, entry, name, presets=presets, elsewhere=_elsewhere("run")))
        elif key == "hosts":
            read_hosts(document, value)
        else:
            document.unknown_key((key,), dict.fromkeys((*sections, "run", "runs", "hosts")), _elsewhere())
    if "run" not in document.data and not document.data.get("runs"):
        document.add((), 'no [run]: add [run] with command = ["python", "train.py"]')
    settings = Settings(**values)
    check_order(document, settings)
    _check_profiles(document, settings.profiles, profiles)
    _check_ramp(document, settings.profiles)
    runs = [section for section in read if section is not None]
    by_name: dict[str, RunSection] = {}
    for run in runs:
        if run.name in by_name:
            document.add((*run.key.split(".", 1), "name"), f'a second run named "{run.name}"; names must differ')
        by_name[run.name] = run
    document.finish()
    return Project(path=path, runs=by_name, settings=settings, provenance=_provenance(document, runs))


def _check_profiles(document: Document, chosen: Profiles, known: Collection[str] | None) -> None:
    if known is None:
        return
    for key, names in (("use", (chosen.use,)), ("ladder", chosen.ladder)):
        for index, name in enumerate(names):
            if name is not None and name not in known:
                document.add(("profiles", key, index), f'unknown profile "{name}"{did_you_mean(name, known)}')


def _check_ramp(document: Document, chosen: Profiles) -> None:
    """A ramp needs a ladder and a first rung."""
    if chosen.ramp and len(chosen.ladder) < 2:
        document.add(("profiles", "ramp"), '"ramp" needs a "ladder" of two profiles or more, safest first')
    elif chosen.ramp and chosen.use not in chosen.ladder:
        first = f'use = "{chosen.ladder[0]}"'
        document.add(("profiles", "ramp"), f'"ramp" needs "use" to name the rung to begin on, for example {first}')


def _sections() -> dict[str, type[msgspec.Struct]]:
    """The sections of the settings by name; new sections of the model are included."""
    defaults = Settings()
    return {field.name: type(getattr(defaults, field.name)) for field in msgspec.structs.fields(Settings)}


def _elsewhere(but: str | None = None) -> dict[str, str]:
    """Return key → section of all keys of other sections, for messages about a misplaced key."""
    tables: dict[str, type[msgspec.Struct]] = {**_sections(), "run": RunTable}
    return {key: name for name, struct in tables.items() if name != but for key in struct.__struct_fields__}


def _provenance(document: Document, runs: list[RunSection]) -> dict[str, Origin]:
    tables: list[tuple[KeyPath, type[msgspec.Struct]]] = [((name,), struct) for name, struct in _sections().items()]
    tables += [(tuple(run.key.split(".", 1)), RunTable) for run in runs]
    where = display_path(document.path)
    return {
        ".".join(map(str, (*at, key))): Origin("file", f"{where}:{document.line(*at, key)}")
        if document.has(*at, key)
        else Origin("default")
        for at, struct in tables
        for key in struct.__struct_fields__
    }


__all__ = ["FILE_NAME", "Origin", "Project", "find_project", "load_project"]
