"""A TOML file with the line of each key, and the checking of its tables against the model's structs."""

import ast
import math
import re
import stat
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import msgspec

from .problem import ConfigError, Problem, did_you_mean, display_path, nearest
from .toml_lines import KeyPath, key_lines

Rule = Callable[[Any], str | None]
"""A check of one value beyond its type: the problem ("must be more than 0"), or None."""


class Document:
    """One parsed file. Collects problems while it is being checked; ``finish`` raises them all."""

    def __init__(self, path: Path, data: dict[str, Any], lines: dict[KeyPath, int]) -> None:
        self.path = path
        self.data = data
        self.problems: list[Problem] = []
        self._lines = lines

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
            return cls(path, tomllib.loads(text), key_lines(text.replace("\r\n", "\n")))
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
        """Whether the key is written."""
        return path in self._lines

    def add(self, path: KeyPath, text: str) -> None:
        """Report a problem at a key."""
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

    def struct_values(
        self,
        path: KeyPath,
        table: Mapping[str, Any],
        struct: type[msgspec.Struct],
        *,
        rules: Mapping[str, Rule] | None = None,
        elsewhere: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """Return the valid values of a table by field name, as the struct's types. Each invalid one is reported.

        ``rules``: field → further check. ``elsewhere``: key → section, to name the right place of a misplaced key.
        """
        fields = {field.encode_name: field for field in msgspec.structs.fields(struct)}
        good: dict[str, Any] = {}
        for key, value in table.items():
            if key not in fields:
                self.unknown_key((*path, key), fields, elsewhere or {})
                continue
            try:
                converted = msgspec.convert(value, type=fields[key].type)
            except msgspec.ValidationError as error:
                kind = describe_type(fields[key].type)
                self.add((*path, key), f'"{key}" must be {kind}{_told(key, _got(value, error))}')
                continue
            complaint = endless(converted) or (rules or {}).get(fields[key].name, _fine)(converted)
            if complaint:
                self.add((*path, key), f'"{key}" {complaint}{_told(key, f"got {show(value)}")}')
            else:
                good[fields[key].name] = converted
        return good

    def unknown_key(self, path: KeyPath, known: Mapping[str, Any], elsewhere: Mapping[str, str]) -> None:
        """Report an unknown key, with the one that was probably meant."""
        key = str(path[-1])
        misplaced = None if nearest(key, known) else nearest(key, elsewhere)
        if misplaced is not None:
            hint = f'; did you mean "{misplaced}" in [{elsewhere[misplaced]}]?'
        else:
            hint = did_you_mean(key, known)
        self.add(path, f'unknown key "{key}"{hint}')


SECRET_KEYS = frozenset({"urls", "ping_url"})
"""Keys whose values hold tokens: a message must not show them."""


def _told(key: str, got: str) -> str:
    return "" if key in SECRET_KEYS else f", {got}"


def describe_type(kind: Any) -> str:
    """Return the name of a type, such as ``a number``, ``a list of texts in quotes`` or ``"file" or "pty"``."""
    if get_origin(kind) is Literal:
        return " or ".join(f'"{choice}"' for choice in get_args(kind))
    if get_origin(kind) is tuple:
        return f"a list of {_PLURALS.get(get_args(kind)[0], 'values')}"
    if get_origin(kind) is dict:
        inner = get_args(kind)[1]
        return "a table of texts" if inner is str else f"a table whose values are {describe_type(inner)}"
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return f"a table with {' and '.join(kind.__struct_fields__)}"
    if get_args(kind):
        return " or ".join(describe_type(part) for part in get_args(kind) if part is not type(None))
    return _NOUNS.get(kind, str(kind))


def show(value: Any) -> str:
    """Return a value as TOML would write it, shortened."""
    text = str(value) if isinstance(value, float) else msgspec.json.encode(value, enc_hook=str).decode()
    return text if len(text) <= 60 else text[:57] + "..."


_NOUNS = {float: "a number", int: "a whole number", str: "a text in quotes", bool: "true or false"}
_PLURALS = {float: "numbers", int: "whole numbers", str: "texts in quotes", bool: "true or false"}
_KEYS = re.compile(r"\((?:(?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"),? ?)+\)")
"""A key in messages of ``tomllib``: ``('runs', 'a')``."""
_TWICE = re.compile(rf"Cannot declare ({_KEYS.pattern}) twice")
_PLACE = re.compile(r"\(at (?:line (\d+), column \d+|end of document)\)")


def _got(value: Any, error: msgspec.ValidationError) -> str:
    """Name the offending element of a list or table (msgspec ends its message with its path), else the value."""
    found = re.search(r"at `\$\[(\d+)\]`", str(error))
    if found and isinstance(value, list):
        return f"got {show(value[int(found[1])])} in it"
    return f"got {show(value)}"


def endless(value: Any) -> str | None:
    """JSON has no Infinity and no NaN: such a setting would not survive in run.json."""
    numbers = value if isinstance(value, tuple) else (value,)
    return None if all(math.isfinite(n) for n in numbers if isinstance(n, float)) else "must be finite"


def _fine(_: Any) -> str | None:
    return None


def _syntax_problem(path: Path, text: str, error: tomllib.TOMLDecodeError) -> Problem:
    found = _PLACE.search(str(error))
    line = int(found[1]) if found and found[1] else text.count("\n") + 1
    said = _PLACE.sub("", str(error)).strip()
    twice = _TWICE.fullmatch(said)
    told = _KEYS.sub(_in_brackets, said) if twice is None else _second(text, line, ast.literal_eval(twice[1]))
    return Problem(display_path(path), line, f"not TOML: {told}")


def _second(text: str, line: int, key: KeyPath) -> str:
    """Of a table that is declared again in this line: where the first one is. All before it is TOML."""
    before = "\n".join(text.replace("\r\n", "\n").split("\n")[: line - 1])
    first = key_lines(before).get(key)
    where = "" if first is None else f"; the first one is in line {first}: write all its keys there"
    return f"a second [{'.'.join(map(str, key))}]{where}"


def _in_brackets(keys: re.Match[str]) -> str:
    return f"[{'.'.join(ast.literal_eval(keys[0]))}]"
