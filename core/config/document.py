"""A TOML file with the line of each key, and the checking of its tables against the model's structs."""

import ast
import os
import re
import stat
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from ..model.text import did_you_mean, nearest
from .bounds import checked, fields_of

KeyPath = tuple[str | int, ...]
"""Keys from the root; an int is the index in an array."""


def key_lines(text: str) -> dict[KeyPath, int]:
    """The line (from 1) where each table, key and array element first appears, of a text that ``tomllib`` accepts.

    Neither ``tomllib`` nor tomlkit gives positions. So each statement is parsed by itself, and again with each of its
    lines: what is new then stands in that line.
    """
    lines: dict[KeyPath, int] = {}
    arrays: dict[KeyPath, int] = {}
    prefix: KeyPath = ()
    statement, began, partly = "", 0, False
    for number, row in enumerate(text.split("\n"), 1):
        if not statement:
            if not row.strip() or row.lstrip().startswith("#"):
                continue
            began, partly = number, False
        statement += f"{row}\n"
        whole = _parsed(statement)
        found = _parsed(f"{statement}]") if whole is None else whole
        if found is None:
            continue
        if statement.lstrip().startswith("["):
            prefix = _header(found, arrays, lines, began)
        for path in () if statement.lstrip().startswith("[") else paths_in(found, prefix):
            lines.setdefault(path, number if partly else began)
        statement, partly = "" if whole is not None else statement, True
    return lines


def _parsed(text: str) -> dict[str, Any] | None:
    try:
        return tomllib.loads(text)
    except ValueError:
        return None


def paths_in(data: Any, path: KeyPath = ()) -> Iterator[KeyPath]:
    for key, value in data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ():
        yield (*path, key)
        yield from paths_in(value, (*path, key))


def _header(found: Any, arrays: dict[KeyPath, int], lines: dict[KeyPath, int], line: int) -> KeyPath:
    """The path of a table's header. ``arrays``: arrays of tables, each with its newest index, which is inside."""
    path: KeyPath = ()
    while isinstance(found, dict) and found:
        key, found = next(iter(found.items()))
        path = (*path, key)
        lines.setdefault(path, line)
        if isinstance(found, list):
            arrays[path] = arrays.get(path, -1) + 1
        if path in arrays:
            path = (*path, arrays[path])
            lines.setdefault(path, line)
    return path


# Problems of a configuration.


class Problem(msgspec.Struct, frozen=True):
    """One problem. ``where``: the file, or a command-line option; ``line`` counts from 1."""

    where: str
    line: int | None
    text: str

    def __str__(self) -> str:
        place = self.where if self.line is None else f"{self.where}:{self.line}"
        return f"{place}: {self.text}"


class ConfigError(Exception):
    """A configuration cannot be used. ``problems``: all that were found; ``str``: one line each."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


class UnknownRun(ConfigError):  # noqa: N818  named after the condition
    """The configuration names no run of that name."""


def display_path(path: Path) -> str:
    relative = os.path.relpath(path)
    return str(path.absolute()) if relative.startswith("..") else relative


class Document:
    """One parsed file. Collects problems while it is being checked; ``finish`` raises them all."""

    def __init__(self, path: Path, data: dict[str, Any], text: str) -> None:
        self.path = path
        self.data = data
        self.problems: list[Problem] = []
        self.tables: Mapping[str, type[msgspec.Struct]] = {}
        """Tables of the file whose keys may stand in the wrong one."""
        self._text = text

    @cached_property
    def _lines(self) -> dict[KeyPath, int]:
        """Found only if a message has to name one."""
        return key_lines(self._text.replace("\r\n", "\n"))

    @classmethod
    def read(cls, path: Path) -> "Document":
        """Read and parse. Raises ConfigError: unreadable, not UTF-8, or not TOML (with its line)."""
        try:
            if not (stat.S_ISREG(mode := path.stat().st_mode) or stat.S_ISDIR(mode)):  # a FIFO would be waited for
                raise ConfigError([Problem(display_path(path), None, "no regular file")])
            text = path.read_bytes().decode("utf-8-sig")
        except OSError as error:
            raise ConfigError([Problem(display_path(path), None, f"{error.strerror or error}")]) from error
        except UnicodeDecodeError as error:
            line = error.object[: error.start].count(b"\n") + 1
            raise ConfigError([Problem(display_path(path), line, "not UTF-8 text; save it as UTF-8")]) from error
        return cls.parse(text, path)

    @classmethod
    def parse(cls, text: str, path: Path) -> "Document":
        """Parse a text; ``path`` names it in problems. Raises ConfigError."""
        try:
            return cls(path, tomllib.loads(text), text)
        except tomllib.TOMLDecodeError as error:
            raise ConfigError([_syntax_problem(path, text, error)]) from error
        except RecursionError as error:
            raise ConfigError([Problem(display_path(path), None, "lists or tables are nested too deeply")]) from error
        except ValueError as error:  # a number of thousands of digits
            raise ConfigError([Problem(display_path(path), None, f"not TOML: {error}")]) from error

    def line(self, *path: str | int) -> int | None:
        """Return the line of a key, or of the nearest table around it; None if neither is written."""
        for length in range(len(path), 0, -1):
            if path[:length] in self._lines:
                return self._lines[path[:length]]
        return None

    def has(self, *path: str | int) -> bool:
        return path in self._lines

    def add(self, path: KeyPath, text: str) -> None:
        self.problems.append(Problem(display_path(self.path), self.line(*path), text))

    def finish(self) -> None:
        """Raise ConfigError with all problems by line, if there are any."""
        if self.problems:
            raise ConfigError(sorted(self.problems, key=lambda p: p.line or 0))

    def table(self, path: KeyPath, value: Any) -> dict[str, Any]:
        """Return the value if it is a table; else report the problem and return an empty one."""
        if isinstance(value, dict):
            return value
        self.add(path, f'"{path[-1]}" is a table: write [{".".join(map(str, path))}] and its keys below')
        return {}

    def struct_values(self, path: KeyPath, table: Mapping[str, Any], struct: type[msgspec.Struct]) -> dict[str, Any]:
        """Return the valid values of a table by field name, as the struct's types. Each invalid one is reported."""
        fields = {field.encode_name: field.name for field in fields_of(struct)}
        good: dict[str, Any] = {}
        for key, value in table.items():
            if key not in fields:
                self.unknown_key((*path, key), fields)
                continue
            try:
                good[fields[key]] = checked(struct, fields[key], value)
            except ValueError as error:
                self.add((*path, key), f'"{key}" {error}')
        return good

    def unknown_key(self, path: KeyPath, known: Iterable[str]) -> None:
        """Report a key that is none of this table's; of another one of ``tables`` it names the right place."""
        key = str(path[-1])
        elsewhere = {other: name for name, struct in self.tables.items() for other in struct.__struct_fields__}
        misplaced = None if nearest(key, known) else nearest(key, elsewhere)
        if misplaced is not None:
            hint = f'; did you mean "{misplaced}" in [{elsewhere[misplaced]}]?'
        else:
            hint = did_you_mean(key, known)
        self.add(path, f'unknown key "{key}"{hint}')


_KEYS = re.compile(r"\((?:(?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"),? ?)+\)")
"""A key in messages of ``tomllib``: ``('runs', 'a')``."""
_TWICE = re.compile(rf"Cannot declare ({_KEYS.pattern}) twice")
_PLACE = re.compile(r"\(at (?:line (\d+), column \d+|end of document)\)")


def _syntax_problem(path: Path, text: str, error: tomllib.TOMLDecodeError) -> Problem:
    found = _PLACE.search(str(error))
    line = int(found[1]) if found and found[1] else text.count("\n") + 1
    said = _PLACE.sub("", str(error)).strip()
    twice = _TWICE.fullmatch(said)
    told = _KEYS.sub(lambda keys: f"[{'.'.join(ast.literal_eval(keys[0]))}]", said)
    if twice is not None:  # a table that is declared again in this line: all before it is TOML
        key = ast.literal_eval(twice[1])
        first = key_lines("\n".join(text.replace("\r\n", "\n").split("\n")[: line - 1])).get(key)
        where = "" if first is None else f"; the first one is in line {first}: write all its keys there"
        told = f"a second [{'.'.join(map(str, key))}]{where}"
    return Problem(display_path(path), line, f"not TOML: {told}")
