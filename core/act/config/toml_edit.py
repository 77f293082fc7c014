"""Changes single values in a TOML text and keeps comments and layout. Every result is checked.

tomlkit writes wrong TOML in some cases (a dotted key that becomes a table moves its neighbours), so each edit is tried
in several ways, and only a text that ``tomllib`` reads as exactly the intended values is used.
"""

import re
import tomllib
from collections.abc import Iterator, Sequence
from typing import Any

from .nested_keys import REMOVED, DeriveError, Edit, KeyPath, edited, present, read_location, same

_AT_LINE = re.compile(r"\(at line (\d+), column \d+\)")


def read_toml(text: str, source: str) -> dict[str, Any]:
    """The values as the trainer reads them. Raises DeriveError with file and line."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        at = _AT_LINE.search(str(error))
        line = int(at.group(1)) if at else max(1, len(text.splitlines()))  # else the message is "at end of document"
        problem = _AT_LINE.sub("", str(error)).strip().rstrip(".")
        raise DeriveError(f"{read_location(line, source)}: not readable as TOML: {problem}") from error


def edit_toml(text: str, edits: Sequence[Edit], source: str) -> str:
    """The text with the edits. Raises DeriveError if no way gives exactly the intended values."""
    for edit in edits:
        before = read_toml(text, source)
        intended = edited(before, edit)
        if same(before, intended):
            continue
        text = _first_proven(text, edit, before, intended, source)
    return text


def _first_proven(text: str, edit: Edit, before: dict[str, Any], intended: dict[str, Any], source: str) -> str:
    for candidate in _candidates(text, edit, before, source):
        try:
            if same(tomllib.loads(candidate), intended):
                return candidate
        except tomllib.TOMLDecodeError:
            continue
    key = ".".join(edit.path)
    raise DeriveError(
        f"{source}: {key} could not be changed without touching other values; write the key on a line of its own"
    )


def _candidates(text: str, edit: Edit, before: dict[str, Any], source: str) -> Iterator[str]:
    """Texts with the edit, the smallest change first."""
    if present(before, edit.path):
        yield from _through_tomlkit(text, edit)
        return
    if edit.value is REMOVED:
        return
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        value = tomlkit.item(edit.value).as_string()
    except (TOMLKitError, ValueError, TypeError) as error:
        raise DeriveError(f"{source}: {'.'.join(edit.path)} = {edit.value!r} cannot be written in TOML") from error
    newline = "\r\n" if "\r\n" in text else "\n"
    at_top = f"{_dotted(edit.path)} = {value}{newline}{text}"
    if len(edit.path) == 1:
        yield at_top
        return
    if isinstance(before.get(edit.path[0]), dict):
        yield from _through_tomlkit(text, edit)
    end = "" if not text or text.endswith("\n") else newline
    yield f"{text}{end}{newline}[{_dotted(edit.path[:-1])}]{newline}{_dotted(edit.path[-1:])} = {value}{newline}"
    yield at_top


def _through_tomlkit(text: str, edit: Edit) -> Iterator[str]:
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        document = tomlkit.parse(text)
        node: Any = document
        for name in edit.path[:-1]:
            node = node[name]
        if edit.value is REMOVED:
            del node[edit.path[-1]]
        else:
            node[edit.path[-1]] = edit.value
        yield tomlkit.dumps(document)
    except (TOMLKitError, KeyError, TypeError, ValueError, AttributeError, IndexError):
        return


def _dotted(path: KeyPath) -> str:
    import tomlkit

    return tomlkit.key(path).as_string() if len(path) > 1 else tomlkit.key(path[0]).as_string()
