"""The shipped data: profiles and presets (with the user's own), and the tables of the judge."""

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, get_args

import msgspec

import trainwatch.configs

from ..model.attempt import HangKind
from ..model.preset import Preset, Profile, is_option
from ..model.settings import Rule
from ..model.shipped import HINTED, FailureCatalogue, FailureSignature, LogShapes, Remedy, RemedyCatalogue
from .document import ConfigError, Document, Problem, show

CONFIGS = Path(trainwatch.configs.__path__[0])
"""The shipped data. Read as files: ``importlib.resources`` takes longer to import than the tables to read."""
_Shape = TypeVar("_Shape", Profile, Preset)
_Table = TypeVar("_Table", FailureCatalogue, LogShapes)


def load_profiles(project: Path | None = None) -> dict[str, Profile]:
    """Return all profiles by name: the shipped ones, replaced by those in the folder ``profiles`` beside ``project``.

    ``project``: a trainwatch.toml. Nested tables of ``[settings]`` become dotted keys. Raises ConfigError with the
    problems of all files at once.
    """
    return {**_shipped_profiles(), **_load_all(_own(project, "profiles"), Profile)}


def load_presets(project: Path | None = None) -> dict[str, Preset]:
    """Return all presets by name, as above, with the folder ``presets`` beside ``project``.

    One that is based on another one has what it does not set itself from that one.
    """
    own = _load_all(_own(project, "presets"), Preset)
    every = {**_shipped_presets(), **own}
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
    text = file.read_text(encoding="utf-8")
    try:
        return _with_texts(msgspec.convert(tomllib.loads(text), type=type_))
    except tomllib.TOMLDecodeError:
        Document.parse(text, file)
        raise
    except msgspec.ValidationError as error:
        # Finding the lines of all keys takes five times as long as the rest: only for the message.
        document = Document.parse(text, file)
        document.add(_place_in(str(error)), str(error))
        document.finish()
        raise


def _pattern(row: FailureSignature, text: str) -> str:
    return row.pattern.replace("%{TEXT}", re.escape(text)) or re.escape(text)


def _with_texts(table: _Table) -> _Table:
    """The table with a signature for each of the ``texts`` of one."""
    if not isinstance(table, FailureCatalogue):
        return table
    replace = msgspec.structs.replace
    classes = []
    for each in table.classes:
        rows = [
            replace(row, texts=(), literal=text or row.literal, pattern=_pattern(row, text))
            for row in each.signatures
            for text in row.texts or ("",)
        ]
        classes.append(replace(each, signatures=tuple(rows)))
    return replace(table, classes=tuple(classes))


@cache
def load_remedies() -> tuple[Remedy, ...]:
    """Return the shipped remedies in order. Raises ConfigError if the file is wrong (a defect of trainwatch)."""
    file = CONFIGS / "remedies.toml"
    document = Document.parse(file.read_text(encoding="utf-8"), file)
    rows = [{**shared, **row} for shared in document.data.get("remedies", ()) for row in shared.pop("rows", ({},))]
    try:
        remedies = msgspec.convert({**document.data, "remedies": rows}, type=RemedyCatalogue).remedies
    except msgspec.ValidationError as error:
        document.add(_place_in(str(error)), str(error))
        document.finish()
        raise
    treatable = {*load_failures().names, *(f"hang:{kind}" for kind in get_args(HangKind)), *HINTED}
    for at, remedy in enumerate(remedies):
        for failure in remedy.failures:
            if failure not in treatable:
                document.add(("remedies", at), f'"{failure}" is no failure class and no hang:KIND')
        if not remedy.changes and remedy.profile is None:
            document.add(("remedies", at), f'"{remedy.name}" changes nothing')
    document.finish()
    return remedies


def _place_in(message: str) -> tuple[str | int, ...]:
    """The place in a message of msgspec: table and number."""
    found = re.search(r"`\$\.(\w+)\[(\d+)\]", message)
    return (found[1], int(found[2])) if found else ()


@cache
def _shipped_profiles() -> dict[str, Profile]:
    return _load_all(_toml_files(CONFIGS / "profiles"), Profile)


@cache
def _shipped_presets() -> dict[str, Preset]:
    return _load_all(_toml_files(CONFIGS / "presets"), Preset)


def _own(project: Path | None, folder: str) -> list[Path]:
    return _toml_files(project.absolute().parent / folder) if project is not None else []


def _toml_files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    files = (file for file in folder.iterdir() if file.name.endswith(".toml") and not file.name.startswith("."))
    return sorted(files, key=lambda file: file.name)


def _load_all(files: Iterable[Path], shape: type[_Shape]) -> dict[str, _Shape]:
    found: dict[str, _Shape] = {}
    problems: list[Problem] = []
    for file in files:
        try:
            value = _load(file, shape)
        except ConfigError as error:
            problems += error.problems
            continue
        if value.name in found:
            problems.append(Problem(str(file), None, f'a second "{value.name}"; names must differ'))
        found[value.name] = value
    if problems:
        raise ConfigError(problems)
    return found


def _load(path: Path, shape: type[_Shape]) -> _Shape:
    document = Document.read(path)
    table: dict[str, Any] = {"name": path.stem, **document.data}
    values = document.struct_values((), table, shape, rules=_RULES)
    if isinstance(values.get("settings"), dict):
        values["settings"] = dict(_dotted((), values["settings"]))
    if any("/" in glob for glob in values.get("checkpoint_globs", ())):
        document.add(("checkpoint_globs",), 'names entries of the output folder: a pattern has no "/"')
    document.finish()
    return shape(**values)


def _dotted(path: tuple[str, ...], table: dict[str, Any]) -> Iterable[tuple[str, Any]]:
    """Flatten: ``[settings.training] batch_size`` and ``"training.batch_size"`` are the same key."""
    for key, value in table.items():
        if isinstance(value, dict) and value:
            yield from _dotted((*path, key), value)
        else:
            yield ".".join((*path, key)), value


def _name(value: str) -> str | None:
    return None if re.fullmatch(r"[A-Za-z0-9][\w.-]*", value) else "may hold letters, digits and . _ - only"


def _patterns(value: tuple[str, ...]) -> str | None:
    for pattern in value:
        try:
            re.compile(pattern)
        except re.error as error:
            return f"holds no regular expression ({error})"
    return None


def _flags(value: tuple[str, ...]) -> str | None:
    """Check that the flags of a profile begin with an option. The rest may be the values of options."""
    if not value or is_option(value[0]):
        return None
    if re.fullmatch(r"[A-Za-z_]\S*", value[0]):
        right = ", ".join(show(word) for word in (f"--{value[0]}", *value[1:]))
        return f"must begin with an option, and {show(value[0])} has no dash in front; type flags = [{right}]"
    return 'must begin with an option; type the option first, as in flags = ["--batch", "2"]'


_RULES: dict[str, Rule] = {"name": _name, "detect_command": _patterns, "flags": _flags}


# Patterns that a person taught: ``trainwatch.learned.toml`` beside trainwatch.toml, written by ``diagnose --teach``.
#
# It is a file of ours, so trainwatch.toml stays as its owner wrote it. A pattern in it counts as one of ``[diagnose]
# patterns``. A damaged file counts as absent when it is read for a diagnosis, and is not replaced when one is taught.

FILE_NAME = "trainwatch.learned.toml"
HEAD = """# Written by `trainwatch diagnose LOG --teach CLASS`: failure class = patterns of the lines that show it.
# They count like [diagnose] patterns in trainwatch.toml. Lines may be changed or deleted.
"""
Patterns = Mapping[str, tuple[str, ...]]


def learned_patterns(folder: Path) -> Patterns:
    """Patterns by failure class; empty if there is no file, or one that cannot be used."""
    try:
        return read_patterns(folder / FILE_NAME)
    except (OSError, ValueError, RecursionError):
        return {}


def read_patterns(path: Path) -> Patterns:
    """The patterns in the file. Raises OSError, and ValueError (one line) if it is damaged."""
    text = path.read_text(encoding="utf-8")
    import tomllib

    from .bounds import failure_patterns  # these two are slow to import, and most projects have no such file

    found = tomllib.loads(text).get("patterns", {})
    if not isinstance(found, dict) or not all(isinstance(rows, list) for rows in found.values()):
        raise ValueError(f"{path}: [patterns] must hold lists of regular expressions by failure class")
    patterns = {str(failure): tuple(str(row) for row in rows) for failure, rows in found.items()}
    if (wrong := failure_patterns(patterns)) is not None:
        raise ValueError(f"{path}: [patterns] {wrong}")
    return patterns


def with_learned(own: Patterns, folder: Path) -> Patterns:
    learned = learned_patterns(folder)
    return {name: (*own.get(name, ()), *learned.get(name, ())) for name in {**own, **learned}}


def text_with(known: Patterns, failure: str, pattern: str) -> str:
    rows = {**known, failure: tuple(dict.fromkeys((*known.get(failure, ()), pattern)))}
    lines = [
        f"{name} = [{', '.join(json.dumps(row, ensure_ascii=False) for row in each)}]" for name, each in rows.items()
    ]
    return f"{HEAD}\n[patterns]\n" + "\n".join(lines) + "\n"
