"""``[run]`` and ``[runs.NAME]``: command, folders and what belongs to them."""

import os.path
import shlex
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from ..model.launch.engine import EngineName
from ..model.settings import End
from ..model.shipped.preset import SaveSignal
from .bounds import BOUNDS
from .document import Document, Rule, show
from .problem import did_you_mean
from .toml_lines import KeyPath

AUTO = "auto"


class RunSection(msgspec.Struct, frozen=True, kw_only=True):
    """One ``[run]`` or ``[runs.NAME]``. Paths absolute; ``preset`` None = detect; ``gpus`` None = all.

    ``key``: its table in the file (``run`` or ``runs.NAME``), the first part of its keys in the provenance.
    """

    key: str
    name: str
    command: tuple[str, ...]
    cwd: str
    env: dict[str, str] = {}
    preset: str | None = None
    config: str | None = None
    output_dir: str | None = None
    logs: tuple[str, ...] = ()
    gpus: tuple[int, ...] | None = None
    terminal: Literal["file", "pty"] = "file"
    save_signal: SaveSignal | None = None
    save_file: str | None = None
    engine: EngineName = "local"
    end: dict[str, Any] = {}
    """Keys of ``[end]`` that are written here: they hold for this run alone."""


class RunTable(msgspec.Struct):
    """The keys of ``[run]`` as they are written."""

    name: str | None = None
    command: tuple[str, ...] = ()
    cwd: str = "."
    env: dict[str, str] = {}
    preset: str | None = None
    config: str | None = None
    output_dir: str | None = None
    logs: tuple[str, ...] = ()
    gpus: Literal["auto"] | tuple[int, ...] = "auto"
    terminal: Literal["file", "pty"] = "file"
    save_signal: SaveSignal | None = None
    save_file: str | None = None
    engine: EngineName = "local"


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
    end = document.struct_values(at, of_end, End, rules=BOUNDS["end"])
    good = RunTable(**document.struct_values(at, table, RunTable, rules=_RULES, elsewhere=elsewhere))
    if good.preset not in {None, AUTO} and presets is not None and good.preset not in presets:
        document.add((*at, "preset"), f'unknown preset "{good.preset}"{did_you_mean(str(good.preset), presets)}')
    if len(document.problems) > count:
        return None
    folder = document.path.parent
    return RunSection(
        key=".".join(map(str, at)),
        name=good.name or name or "run",
        command=good.command,
        cwd=absolute(folder, good.cwd),
        env=good.env,
        preset=None if good.preset == AUTO else good.preset,
        config=absolute(folder, good.config) if good.config else None,
        output_dir=absolute(folder, good.output_dir) if good.output_dir else None,
        logs=tuple(absolute(folder, log) for log in good.logs),
        gpus=good.gpus if isinstance(good.gpus, tuple) else None,
        terminal=good.terminal,
        save_signal=good.save_signal,
        save_file=good.save_file,
        engine=good.engine,
        end=end,
    )


def absolute(folder: Path, path: str) -> str:
    """Return a path of a config as an absolute one, ``~`` filled in and ``..`` folded; links are kept as they are."""
    return os.path.normpath(folder / os.path.expanduser(path))  # noqa: PTH111  Path.expanduser raises for an unknown ~name


def _check_env(document: Document, at: KeyPath, table: dict[str, Any]) -> None:
    """Report each variable that is not a text, and return the others."""
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
    if value == AUTO:
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
