"""A project: its trainwatch.toml, checked as a whole, with the origin of each value."""

import os.path
import shlex
import tomllib
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from ..model.job import EngineName
from ..model.preset import SaveSignal
from ..model.settings import End, Profiles, Rule, Settings
from .bounds import check_order, complaint, out_of_order, rules_of
from .document import (
    SECRET_KEYS,
    ConfigError,
    Document,
    KeyPath,
    Problem,
    UnknownRun,
    did_you_mean,
    display_path,
    show,
)
from .hosts import read_hosts
from .location import FILE_NAME, find_project

# ``--set KEY=VALUE``: single settings changed from a command line.


def with_overrides(settings: Settings, words: Iterable[str]) -> Settings:
    """Settings with each ``section.key=value`` applied; values are TOML (``4``, ``0.5``, ``[0, 10]``, ``true``).

    Raises ValueError with a sentence that names the word and the nearest key.
    """
    given: dict[str, str] = {}
    for word in words:
        settings = _with_one(settings, word)
        given[word.partition("=")[0].strip()] = word
    for section, low, high, sentence in out_of_order(settings):
        told = given.get(f"{section}.{low}") or given.get(f"{section}.{high}")
        raise ValueError(f"--set {told}: {sentence}")
    return settings


def _with_one(settings: Settings, word: str) -> Settings:
    path, separator, text = word.partition("=")
    section, _, key = path.strip().partition(".")
    if not separator or not key:
        raise ValueError(f"--set {word}: write it as SECTION.KEY=VALUE, as in hang.min_s=60")
    if section not in Settings.__struct_fields__:
        raise ValueError(
            f'--set {word}: unknown section "{section}"{did_you_mean(section, Settings.__struct_fields__)}'
        )
    current: msgspec.Struct = getattr(settings, section)
    fields = type(current).__struct_fields__
    if key not in fields:
        raise ValueError(f'--set {word}: unknown key "{key}" in {section}{did_you_mean(key, fields)}')
    values = {**msgspec.to_builtins(current), key: _value(text.strip())}
    shown = path.strip() if key in SECRET_KEYS else word
    try:
        changed = msgspec.convert(values, type(current))
    except msgspec.ValidationError as error:
        raise ValueError(f"--set {shown}: {error}") from None
    wrong = complaint(section, key, getattr(changed, key))
    if wrong is not None:
        raise ValueError(f"--set {shown}: {wrong}")
    return msgspec.structs.replace(settings, **{section: changed})


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        return text


# ``[run]`` and ``[runs.NAME]``: command, folders and what belongs to them.

AUTO = "auto"


class RunTable(msgspec.Struct, frozen=True, kw_only=True):
    """The keys of ``[run]``. As they are written, or for a run: paths absolute; ``preset``, ``gpus`` None = auto."""

    name: str | None = None
    command: tuple[str, ...] = ()
    cwd: str = "."
    env: dict[str, str] = {}
    preset: str | None = None
    config: str | None = None
    output_dir: str | None = None
    logs: tuple[str, ...] = ()
    gpus: Literal["auto"] | tuple[int, ...] | None = None
    terminal: Literal["file", "pty"] = "file"
    save_signal: SaveSignal | None = None
    save_file: str | None = None
    engine: EngineName = "local"


class RunSection(RunTable, frozen=True, kw_only=True):
    """One ``[run]`` or ``[runs.NAME]``. ``key``: its table in the file, the first part of its keys in the provenance.

    ``end``: keys of ``[end]`` that are written here: they hold for this run alone.
    """

    name: str
    key: str = "run"
    end: dict[str, Any] = {}


def read_run(
    document: Document,
    at: KeyPath,
    value: Any,
    name: str,
    *,
    presets: Collection[str] | None,
    elsewhere: Mapping[str, str],
) -> RunSection | None:
    """Read ``[run]`` or ``[runs.NAME]``; ``name``: used if it has none. None if it has problems, which are reported."""
    table = dict(document.table(at, value))
    if not isinstance(value, dict):
        return None
    count = len(document.problems)
    _check_env(document, at, table)
    command = table.get("command")
    if command is None:
        document.add(at, f'[{".".join(map(str, at))}] has no "command"; for example command = ["python", "train.py"]')
    elif isinstance(command, str):
        words = ", ".join(show(word) for word in _split(table.pop("command")))
        document.add((*at, "command"), f'"command" must be a list of words: command = [{words}]')
    of_end = {key: table.pop(key) for key in list(table) if key in End.__struct_fields__}
    end = document.struct_values(at, of_end, End, rules=rules_of("end"))
    good = RunTable(**document.struct_values(at, table, RunTable, rules=_RULES, elsewhere=elsewhere))
    if good.preset not in {None, AUTO} and presets is not None and good.preset not in presets:
        document.add((*at, "preset"), f'unknown preset "{good.preset}"{did_you_mean(str(good.preset), presets)}')
    if len(document.problems) > count:
        return None
    folder = document.path.parent
    values = msgspec.structs.asdict(good) | {
        "name": good.name or name or "run",
        "cwd": absolute(folder, good.cwd),
        "preset": None if good.preset == AUTO else good.preset,
        "config": absolute(folder, good.config) if good.config else None,
        "output_dir": absolute(folder, good.output_dir) if good.output_dir else None,
        "logs": tuple(absolute(folder, log) for log in good.logs),
        "gpus": None if good.gpus == AUTO else good.gpus,
    }
    return RunSection(key=".".join(map(str, at)), end=end, **values)


def absolute(folder: Path, path: str) -> str:
    """Return a path of a config as an absolute one, ``~`` filled in and ``..`` folded; links are kept as they are."""
    return os.path.normpath(folder / os.path.expanduser(path))  # noqa: PTH111  Path.expanduser raises for an unknown ~name


def _check_env(document: Document, at: KeyPath, table: dict[str, Any]) -> None:
    if not isinstance(table.get("env"), dict):
        return
    good = {}
    for variable, value in table["env"].items():
        if not isinstance(value, str):
            document.add((*at, "env", variable), f'"{variable}" must be a text in quotes, like "1", got {_toml(value)}')
        elif not variable or "=" in variable or "\0" in variable + value:
            document.add((*at, "env", variable), f'"{variable}" cannot be the name of a variable, or its value')
        else:
            good[variable] = value
    table["env"] = good


def _toml(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _split(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()


def _words(value: tuple[str, ...]) -> str | None:
    if not value or not value[0].strip():
        return "must begin with a program"
    return "must not hold a NUL character" if any("\0" in word for word in value) else None


def _indices(value: Any) -> str | None:
    if value in {None, AUTO}:
        return None
    if not value:
        return 'must name at least one GPU, or be "auto"'
    if any(index < 0 for index in value):
        return "must not hold a negative index"
    return None if len(set(value)) == len(value) else "must not hold an index twice"


def _filled(value: str | tuple[str, ...] | None) -> str | None:
    texts = value if isinstance(value, tuple) else (value,)
    return "must not be empty" if any(text is not None and not text.strip() for text in texts) else None


_RULES: dict[str, Rule] = {
    "name": _filled,
    "command": _words,
    "cwd": _filled,
    "config": _filled,
    "output_dir": _filled,
    "logs": _filled,
    "gpus": _indices,
    "save_file": _filled,
}


class Origin(msgspec.Struct, frozen=True):
    """Origin of a value. ``str``: ``default``, ``trainwatch.toml:14`` or ``--interval``."""

    kind: Literal["default", "file", "command line"]
    where: str = "default"

    def __str__(self) -> str:
        return self.where


class Project(msgspec.Struct, frozen=True, kw_only=True):
    path: Path
    runs: dict[str, RunSection]
    settings: Settings
    document: Document

    @property
    def provenance(self) -> dict[str, Origin]:
        """Dotted key (``watch.interval_s``, ``run.command``) → origin."""
        return _provenance(self.document, list(self.runs.values()))

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
            good = document.struct_values((key,), table, sections[key], rules=rules_of(key), elsewhere=elsewhere)
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
    return Project(path=path, runs=by_name, settings=settings, document=document)


def _check_profiles(document: Document, chosen: Profiles, known: Collection[str] | None) -> None:
    if known is None:
        return
    for key, names in (("use", (chosen.use,)), ("ladder", chosen.ladder)):
        for index, name in enumerate(names):
            if name is not None and name not in known:
                document.add(("profiles", key, index), f'unknown profile "{name}"{did_you_mean(name, known)}')


def _check_ramp(document: Document, chosen: Profiles) -> None:
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
