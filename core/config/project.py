"""A project: its trainwatch.toml, checked as a whole, with the origin of each value, and the options over it."""

import os.path
import re
import shlex
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec

from ..model.preset import SaveSignal
from ..model.run import PLACEHOLDERS, EngineName
from ..model.settings import End, Profiles, Settings
from ..model.text import did_you_mean
from .bounds import SECRET_KEYS, checked, filled, out_of_order, show
from .document import ConfigError, Document, KeyPath, Problem, UnknownRun, display_path
from .hosts import read_hosts
from .location import FILE_NAME, find_project

# ``--set KEY=VALUE``: single settings changed from a command line.


def with_overrides(settings: Settings, words: Iterable[str]) -> Settings:
    """Settings with each ``section.key=value`` applied; values are TOML (``4``, ``0.5``, ``[0, 10]``, ``true``).

    Raises ValueError with a sentence that names the word and the nearest key.
    """
    given: dict[str, str] = {}
    sections = Settings.__struct_fields__
    for word in words:
        path, separator, text = word.partition("=")
        path = path.strip()
        section, _, key = path.partition(".")
        if not separator or not key:
            raise ValueError(f"--set {word}: write it as SECTION.KEY=VALUE, as in hang.min_s=60")
        if section not in sections:
            raise ValueError(f'--set {word}: unknown section "{section}"{did_you_mean(section, sections)}')
        fields = type(getattr(settings, section)).__struct_fields__
        if key not in fields:
            raise ValueError(f'--set {word}: unknown key "{key}" in {section}{did_you_mean(key, fields)}')
        given[path] = path if key in SECRET_KEYS else word
        try:
            settings = _with_value(settings, path, _value(text.strip()))
        except ValueError as error:
            raise ValueError(f"--set {given[path]}: {error}") from None
    for section, low, high, sentence in out_of_order(settings):
        told = given.get(f"{section}.{low}") or given.get(f"{section}.{high}")
        raise ValueError(f"--set {told}: {sentence}")
    return settings


def _with_value(settings: Settings, path: str, value: Any) -> Settings:
    """Raises ValueError with what is wrong with the value of this ``section.key``."""
    section, _, key = path.partition(".")
    table = getattr(settings, section)
    changed = msgspec.structs.replace(table, **{key: checked(type(table), key, value)})
    return msgspec.structs.replace(settings, **{section: changed})


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        return text


# ``[run]`` and ``[runs.NAME]``: command, folders and what belongs to them.

AUTO = "auto"


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


class RunTable(msgspec.Struct, frozen=True, kw_only=True):
    """The keys of ``[run]``. As they are written, or for a run: paths absolute; ``preset``, ``gpus`` None = auto."""

    name: Annotated[str | None, filled] = None
    command: Annotated[tuple[str, ...], _words] = ()
    cwd: Annotated[str, filled] = "."
    env: dict[str, str] = {}
    preset: str | None = None
    config: Annotated[str | None, filled] = None
    output_dir: Annotated[str | None, filled] = None
    logs: Annotated[tuple[str, ...], filled] = ()
    gpus: Annotated[Literal["auto"] | tuple[int, ...] | None, _indices] = None
    terminal: Literal["file", "pty"] = "file"
    save_signal: SaveSignal | None = None
    save_file: Annotated[str | None, filled] = None
    engine: EngineName = "local"


class RunSection(RunTable, frozen=True, kw_only=True):
    """One ``[run]`` or ``[runs.NAME]``. ``key``: its table in the file, the first part of its keys in the provenance.

    ``end``: keys of ``[end]`` that are written here: they hold for this run alone.
    """

    name: str
    key: str = "run"
    end: dict[str, Any] = {}


def read_run(
    document: Document, at: KeyPath, value: Any, name: str, presets: Collection[str] | None
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
    end = document.struct_values(at, of_end, End)
    good = document.struct_values(at, table, RunTable)
    if unknown := _unknown("preset", good.get("preset"), presets):
        document.add((*at, "preset"), unknown)
    if len(document.problems) > count:
        return None
    values = {"cwd": ".", **good, "name": good.get("name") or name or "run"}
    return RunSection(key=".".join(map(str, at)), end=end, **_placed(document.path.parent, values))


def _placed(folder: Path, values: Mapping[str, Any]) -> dict[str, Any]:
    """Keys of ``[run]`` as a run has them: paths from this folder, ``auto`` as None."""
    made: dict[str, Any] = {
        key: None if key in {"preset", "gpus"} and value == AUTO else value for key, value in values.items()
    }
    for key in {"cwd", "config", "output_dir"} & made.keys():
        made[key] = made[key] and absolute(folder, made[key])
    return made | {"logs": tuple(absolute(folder, log) for log in made["logs"])} if "logs" in made else made


def _unknown(what: str, name: str | None, known: Collection[str] | None) -> str:
    """The problem if this name is not among the known ones; "" if it is, or if nothing is known or given."""
    if name is None or known is None or name in known or (what == "preset" and name == AUTO):
        return ""
    return f'unknown {what} "{name}"{did_you_mean(name, known)}'


def absolute(folder: Path, path: str) -> str:
    """Return a path of a config as an absolute one, ``~`` filled in and ``..`` folded; links are kept as they are."""
    return os.path.normpath(folder / os.path.expanduser(path))  # noqa: PTH111  Path.expanduser raises for an unknown ~name


def _check_env(document: Document, at: KeyPath, table: dict[str, Any]) -> None:
    if not isinstance(table.get("env"), dict):
        return
    good = {}
    for variable, value in table["env"].items():
        if not isinstance(value, str):
            document.add((*at, "env", variable), f'"{variable}" must be a text in quotes, like "1", got {show(value)}')
        elif not variable or "=" in variable or "\0" in variable + value:
            document.add((*at, "env", variable), f'"{variable}" cannot be the name of a variable, or its value')
        else:
            good[variable] = value
    table["env"] = good


def _split(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()


class Project(msgspec.Struct, frozen=True, kw_only=True):
    path: Path
    runs: dict[str, RunSection]
    settings: Settings
    document: Document

    def origin(self, section: str, key: str) -> str:
        """Where a key stands: ``trainwatch.toml:14``, or ``default``. ``section``: ``watch``, ``runs.NAME``."""
        path, document = (*section.split(".", 1), key), self.document
        return f"{display_path(document.path)}:{document.line(*path)}" if document.has(*path) else "default"

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
    defaults = Settings()
    sections = {each.name: type(getattr(defaults, each.name)) for each in msgspec.structs.fields(Settings)}
    document.tables = {**sections, "run": RunTable}
    values: dict[str, Any] = {}
    read: list[RunSection | None] = []
    for key, value in document.data.items():
        if key in sections:
            values[key] = sections[key](**document.struct_values((key,), document.table((key,), value), sections[key]))
        elif key == "run":
            read.append(read_run(document, ("run",), value, path.parent.name, presets))
        elif key == "runs":
            table = document.table(("runs",), value)
            read += [read_run(document, ("runs", name), entry, name, presets) for name, entry in table.items()]
        elif key == "hosts":
            read_hosts(document, value)
        else:
            document.unknown_key((key,), (*sections, "run", "runs", "hosts"))
    if "run" not in document.data and not document.data.get("runs"):
        document.add((), 'no [run]: add [run] with command = ["python", "train.py"]')
    settings = Settings(**values)
    for section, low, high, sentence in out_of_order(settings):
        document.add((section, low if document.has(section, low) else high), sentence)
    _check_profiles(document, settings.profiles, profiles)
    by_name: dict[str, RunSection] = {}
    for run in read:
        if run is None:
            continue
        if run.name in by_name:
            document.add((*run.key.split(".", 1), "name"), f'a second run named "{run.name}"; names must differ')
        by_name[run.name] = run
    document.finish()
    return Project(path=path, runs=by_name, settings=settings, document=document)


def _check_profiles(document: Document, chosen: Profiles, known: Collection[str] | None) -> None:
    for key, names in (("use", (chosen.use,)), ("ladder", chosen.ladder)):
        for index, name in enumerate(names):
            if unknown := _unknown("profile", name, known):
                document.add(("profiles", key, index), unknown)
    if chosen.ramp and len(chosen.ladder) < 2:
        document.add(("profiles", "ramp"), '"ramp" needs a "ladder" of two profiles or more, safest first')
    elif chosen.ramp and chosen.use not in chosen.ladder:
        first = f'use = "{chosen.ladder[0]}"'
        document.add(("profiles", "ramp"), f'"ramp" needs "use" to name the rung to begin on, for example {first}')


__all__ = ["FILE_NAME", "Project", "find_project", "load_project"]


_LAUNCHERS = frozenset(
    {"accelerate", "torchrun", "deepspeed", "uv", "poetry", "pipenv", "conda", "env", "nohup", "nice"}
)
_SCRIPTS = frozenset({".py", ".sh", ".bash", ".ipynb"})


class Option(NamedTuple):
    """An option of the command line, and its key in the file."""

    option: str
    key: str


class Overrides(msgspec.Struct, frozen=True, kw_only=True):
    """Options of the command line; None = not given. Paths are relative to the working folder.

    ``interval_s`` is ``--interval``, the period of the health line.
    """

    name: Annotated[str | None, Option("--name", "run.name")] = None
    preset: Annotated[str | None, Option("--preset", "run.preset")] = None
    profile: Annotated[str | None, Option("--profile", "profiles.use")] = None
    config: Annotated[str | None, Option("--config", "run.config")] = None
    output_dir: Annotated[str | None, Option("--output-dir", "run.output_dir")] = None
    interval_s: Annotated[float | None, Option("--interval", "watch.summary_s")] = None
    max_restarts: Annotated[int | None, Option("--max-restarts", "restart.max_restarts")] = None
    act: Annotated[str | None, Option("--act", "restart.act")] = None
    save_signal: Annotated[str | None, Option("--save-signal", "run.save_signal")] = None
    save_file: Annotated[str | None, Option("--save-file", "run.save_file")] = None
    end_by: Annotated[str | None, Option("--end-by", "end.end_by")] = None
    at_finish: Annotated[tuple[str, ...] | None, Option("--at-finish", "end.at_finish")] = None
    at_give_up: Annotated[tuple[str, ...] | None, Option("--at-give-up", "end.at_give_up")] = None
    shapes: Annotated[tuple[str, ...] | None, Option("--progress-shape", "progress.shapes")] = None


OPTIONS: dict[str, Option] = {each.name: each.type.__metadata__[0] for each in msgspec.structs.fields(Overrides)}
"""By field."""


def name_of_command(argv: Sequence[str]) -> str:
    """Return a name for a bare command: its script, its module, else its program."""
    words = list(argv)
    for number, word in enumerate(words):
        if Path(word).suffix in _SCRIPTS:
            return Path(word).stem
        if word == "-c":
            break
        if word == "-m" and number + 1 < len(words):
            return words[number + 1].rpartition(".")[2]
    programs = [w for w in words if not w.startswith("-") and "=" not in w and Path(w).name not in _LAUNCHERS]
    return Path((programs or words)[0]).name or "run"


def given(overrides: Overrides) -> dict[str, tuple[str, Any]]:
    """The options that are given, by key of the file: their names and values."""
    told = {key: (option, getattr(overrides, field)) for field, (option, key) in OPTIONS.items()}
    return {key: (option, value) for key, (option, value) in told.items() if value is not None}


def with_options(run: RunSection, overrides: Overrides, cwd: Path) -> RunSection:
    """The run with the options of the command line. ``cwd``: the working folder, for paths given there."""
    of_run = {k.removeprefix("run."): value for k, (_, value) in given(overrides).items() if k.startswith("run.")}
    return msgspec.structs.replace(run, **_placed(cwd.absolute(), of_run))


def settings_with(settings: Settings, overrides: Overrides) -> Settings:
    """The settings with the options of the command line. Raises ConfigError that names those that are wrong."""
    problems = []
    for key, (option, value) in given(overrides).items():
        try:
            settings = settings if key.startswith("run.") else _with_value(settings, key, value)
        except ValueError as error:
            problems.append(Problem(option, None, str(error)))
    if problems:
        raise ConfigError(problems)
    return settings


def option_problems(overrides: Overrides, presets: Collection[str], profiles: Collection[str] | None) -> list[Problem]:
    found = {
        "--name": (overrides.name is not None and filled(overrides.name)) or "",
        "--preset": _unknown("preset", overrides.preset, presets),
        "--profile": _unknown("profile", overrides.profile, profiles),
    }
    problems = [Problem(option, None, text) for option, text in found.items() if text]
    try:
        settings_with(Settings(), overrides)
    except ConfigError as error:
        problems += error.problems
    return problems


def launch_problems(run: RunSection, place: Callable[[str], str]) -> list[Problem]:
    """Problems that make every launch fail. ``place``: where a key was written."""
    problems: list[Problem] = []
    if not Path(run.cwd).is_dir():
        problems.append(Problem(place("cwd"), None, f'"cwd" is no folder: {run.cwd}'))
    if run.config is not None and not Path(run.config).is_file():
        problems.append(Problem(place("config"), None, f'"config" is no file: {run.config}'))
    if run.output_dir is not None and Path(run.output_dir).exists() and not Path(run.output_dir).is_dir():
        problems.append(Problem(place("output_dir"), None, f'"output_dir" is no folder: {run.output_dir}'))
    problems += [Problem(place("command"), None, text) for text in misspelt(run.command)]
    for placeholder, value in (("config", run.config), ("output_dir", run.output_dir)):
        if value is None and any(f"{{{placeholder}}}" in word for word in run.command):
            option = OPTIONS[placeholder][0]
            text = (
                f'the command uses {{{placeholder}}}, but "{placeholder}" is not set; set it in the file or by {option}'
            )
            problems.append(Problem(place("command"), None, text))
    return problems


# ``{word}`` in a command: a placeholder, a misspelt one, or braces of the trainer.

_BRACED = re.compile(r"(?<![$\w{])\{([A-Za-z_]\w*)\}(?!\})")
"""Not ``${VARIABLE}``, not ``{{literal}}``."""
_FORMATTED = re.compile(r"""\b[rR]?[fF][rR]?["']""")
"""Python code with f-strings: its braces are not placeholders."""
_PROSE = re.compile(r"[\s\"'()\[\]]")
"""An argument with one of these is a line of code or JSON: braces are usual there."""
NEAR = 0.7
NEAR_IN_PROSE = 0.8
"""Similarity from which a word counts as a misspelt placeholder; in code, ``{result}`` does not."""


def misspelt(command: Sequence[str]) -> Iterator[str]:
    """A sentence for each unknown placeholder: a misspelt one, or one that is a whole argument."""
    for word in command:
        if _FORMATTED.search(word):
            continue
        cutoff = NEAR_IN_PROSE if _PROSE.search(word) else NEAR
        for found in _BRACED.finditer(word):
            name = found[1]
            if name in PLACEHOLDERS:
                continue
            from difflib import get_close_matches  # loaded for a misspelt word only

            near = get_close_matches(name.lower(), PLACEHOLDERS, n=1, cutoff=cutoff)
            if near:
                yield f'the command uses the unknown placeholder {{{name}}}; did you mean "{{{near[0]}}}"?'
            elif found[0] == word:
                known = " ".join(f"{{{placeholder}}}" for placeholder in PLACEHOLDERS)
                yield f"the command uses the unknown placeholder {{{name}}}; there are: {known}"
