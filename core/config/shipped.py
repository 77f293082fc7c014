"""The shipped data: profiles and presets (with the user's own), and the tables of the judge."""

import re
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, get_args

import msgspec

import trainwatch.configs

from ..model.preset import Preset, Profile, leaves
from ..model.run import HangKind
from ..model.shipped import HINTED, FailureCatalogue, LogShapes, Remedy, RemedyCatalogue
from .document import ConfigError, Document, KeyPath, Problem

CONFIGS = Path(trainwatch.configs.__path__[0])
"""The shipped data. Read as files: ``importlib.resources`` takes longer to import than the tables to read."""
_Shape = TypeVar("_Shape", Profile, Preset)
_Table = TypeVar("_Table", FailureCatalogue, LogShapes, RemedyCatalogue)


def load_profiles(project: Path | None = None) -> dict[str, Profile]:
    """Return all profiles by name: the shipped ones, replaced by those in the folder ``profiles`` beside ``project``.

    ``project``: a trainwatch.toml. Nested tables of ``[settings]`` become dotted keys. Raises ConfigError with the
    problems of all files at once.
    """
    return {**_shipped(Profile), **_own(project, Profile)}


def load_presets(project: Path | None = None) -> dict[str, Preset]:
    """Return all presets by name, as above, with the folder ``presets`` beside ``project``.

    One that is based on another one has what it does not set itself from that one.
    """
    every = {**_shipped(Preset), **_own(project, Preset)}
    problems = [
        Problem(name, None, f'preset "{name}" is based on "{preset.based_on}", which is no preset of its own')
        for name, preset in every.items()
        if preset.based_on is not None and (preset.based_on not in every or every[preset.based_on].based_on is not None)
    ]
    if problems:
        raise ConfigError(problems)
    return {
        name: preset if preset.based_on is None else _inherited(preset, every[preset.based_on])
        for name, preset in every.items()
    }


_OWN = frozenset({"name", "title", "description", "based_on", "never_run", "over", "source"})
"""Fields of a preset that are never those of another one; nor are those that recognise it."""


def _inherited(preset: Preset, base: Preset) -> Preset:
    left_out = {
        field.name: getattr(base, field.name)
        for field in msgspec.structs.fields(preset)
        if field.name not in _OWN
        and not field.name.startswith("detect_")
        and getattr(preset, field.name) in (field.default, {})
    }
    return msgspec.structs.replace(preset, **left_out)


@cache
def load_failures() -> FailureCatalogue:
    """Return the shipped failure catalogue. Raises ConfigError if the file is wrong (a defect of trainwatch)."""
    return read_table(CONFIGS / "failures.toml", FailureCatalogue)


@cache
def load_log_shapes() -> LogShapes:
    """Return the shipped forms of log lines. Raises ConfigError if the file is wrong (a defect of trainwatch)."""
    return read_table(CONFIGS / "log_shapes.toml", LogShapes)


def read_table(file: Path, type_: type[_Table]) -> _Table:
    """Read a table of the judge. Raises ConfigError."""
    document = Document.read(file)
    return _with_texts(_converted(document, document.data, type_))


def _converted(document: Document, data: Any, type_: type[_Table]) -> _Table:
    try:
        return msgspec.convert(data, type=type_)
    except msgspec.ValidationError as error:
        found = re.search(r"`\$\.(\w+)\[(\d+)\]", str(error))  # table and number
        document.add((found[1], int(found[2])) if found else (), str(error))
        document.finish()
        raise


def _with_texts(table: _Table) -> _Table:
    """The table with a signature for each of the ``texts`` of one."""
    if not isinstance(table, FailureCatalogue):
        return table
    replace = msgspec.structs.replace
    classes = []
    for each in table.classes:
        rows = []
        for row in each.signatures:
            for text in row.texts or ("",):
                pattern = row.pattern.replace("%{TEXT}", re.escape(text)) or re.escape(text)
                rows.append(replace(row, texts=(), literal=text or row.literal, pattern=pattern))
        classes.append(replace(each, signatures=tuple(rows)))
    return replace(table, classes=tuple(classes))


@cache
def load_remedies() -> tuple[Remedy, ...]:
    """Return the shipped remedies in order. Raises ConfigError if the file is wrong (a defect of trainwatch)."""
    document = Document.read(CONFIGS / "remedies.toml")
    rows = [{**shared, **row} for shared in document.data.get("remedies", ()) for row in shared.pop("rows", ({},))]
    for row in rows:
        row["changes"] = [
            {**change, "key": key}
            for change in row.get("changes", ())
            for key in (change["key"] if isinstance(change["key"], list) else (change["key"],))
        ]
    remedies = _converted(document, {**document.data, "remedies": rows}, RemedyCatalogue).remedies
    treatable = {*load_failures().names, *(f"hang:{kind}" for kind in get_args(HangKind)), *HINTED}
    for at, remedy in enumerate(remedies):
        for failure in remedy.failures:
            if failure not in treatable:
                document.add(("remedies", at), f'"{failure}" is no failure class and no hang:KIND')
        if not remedy.changes and remedy.profile is None:
            document.add(("remedies", at), f'"{remedy.name}" changes nothing')
    document.finish()
    return remedies


_FOLDERS = {Profile: "profiles", Preset: "presets"}


@cache
def _shipped(shape: type[_Shape]) -> dict[str, _Shape]:
    return _load_all(CONFIGS / _FOLDERS[shape], shape)


def _own(project: Path | None, shape: type[_Shape]) -> dict[str, _Shape]:
    return {} if project is None else _load_all(project.absolute().parent / _FOLDERS[shape], shape)


def _load_all(folder: Path, shape: type[_Shape]) -> dict[str, _Shape]:
    found: dict[str, _Shape] = {}
    problems: list[Problem] = []
    for file in sorted(folder.glob("[!.]*.toml")):
        try:
            values = _load(file, shape)
        except ConfigError as error:
            problems += error.problems
            continue
        for value in values:
            if value.name in found:
                problems.append(Problem(str(file), None, f'a second "{value.name}"; names must differ'))
            found[value.name] = value
    if problems:
        raise ConfigError(problems)
    return found


def _load(path: Path, shape: type[_Shape]) -> list[_Shape]:
    """What a file holds: one, or a family of them: its ``[[rows]]``, with the keys that all of them share above."""
    document = Document.read(path)
    rows = document.data.pop("rows") if isinstance(document.data.get("rows"), list) else []
    shared = {"name": path.stem, **_values(document, (), document.data, shape)}
    found = [_values(document, ("rows", at), row, shape) for at, row in enumerate(rows)]
    document.finish()
    for row in found:
        if "settings" in shared:
            row["settings"] = {**(own := row.get("settings", {})), **shared["settings"], **own}
    return [shape(**{**shared, **row}) for row in found or [{}]]


def _values(document: Document, at: KeyPath, table: Any, shape: type[_Shape]) -> dict[str, Any]:
    values = document.struct_values(at, document.table(at, table), shape)
    if isinstance(values.get("settings"), dict):
        values["settings"] = dict(leaves(values["settings"]))
    if any("/" in glob for glob in values.get("checkpoint_globs", ())):
        document.add((*at, "checkpoint_globs"), 'names entries of the output folder: a pattern has no "/"')
    return values
