"""Single values changed in JSON, TOML and YAML texts; all else stays as it was written."""

import contextlib
import io
import json
import re
import tomllib
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any

from .nested_keys import REMOVED, DeriveError, Edit, KeyPath, dotted, edited, float_text, present, read_location, same

_INDENT = re.compile(r"\n([ \t]+)\S")


def read_json(text: str, source: str) -> dict[Any, Any]:
    """The values as the trainer reads them. Raises DeriveError with file and line."""
    try:
        found = json.loads(text)
    except ValueError as error:
        line = getattr(error, "lineno", None)
        problem = getattr(error, "msg", str(error))
        raise DeriveError(f"{read_location(line, source)}: not readable as JSON: {problem}") from error
    if not isinstance(found, dict):
        raise DeriveError(f"{source}: the config must be a mapping of keys to values")
    return found


def edit_json(text: str, edits: Sequence[Edit], source: str) -> str:
    """The text with the edits. Raises DeriveError if it cannot be read."""
    if not edits:
        return text
    tree = read_json(text, source)
    for edit in edits:
        tree = edited(tree, edit)
    indent = _INDENT.search(text)
    return json.dumps(tree, indent=None if indent is None else indent[1], ensure_ascii=False) + "\n"


# Changes single values in a TOML text and keeps comments and layout. Every result is checked.
#
# tomlkit writes wrong TOML in some cases (a dotted key that becomes a table moves its neighbours), so each edit is
# tried in several ways, and only a text that ``tomllib`` reads as exactly the intended values is used.

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
    return _edited(text, edits, source, read_toml, _toml_candidates)


def _edited(
    text: str,
    edits: Sequence[Edit],
    source: str,
    read: Callable[[str, str], dict[Any, Any]],
    candidates: Callable[[str, Edit, dict[Any, Any], str], Iterator[str]],
) -> str:
    """The first candidate of each edit that reads as exactly the intended values. Raises DeriveError if none does."""
    for edit in edits:
        before = read(text, source)
        intended = edited(before, edit)
        if same(before, intended):
            continue
        for candidate in candidates(text, edit, before, source):
            with contextlib.suppress(DeriveError):
                if same(read(candidate, source), intended):
                    text = candidate
                    break
        else:
            raise DeriveError(
                f"{source}: {dotted(edit.path)} could not be changed without touching other values; write the key on "
                "a line of its own"
            )
    return text


def _toml_candidates(text: str, edit: Edit, before: dict[str, Any], source: str) -> Iterator[str]:
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
        raise DeriveError(f"{source}: {dotted(edit.path)} = {edit.value!r} cannot be written in TOML") from error
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

    names = list(map(str, path))
    return tomlkit.key(names if len(names) > 1 else names[0]).as_string()


# Changes single values in a YAML text with ruamel.yaml's round trip, which keeps comments, order and number formats.
#
# What it writes is read again as PyYAML, which most trainers use, reads it.

_WORDS = re.compile(r"[yYnN]|[-+]?[\d_]+\.?[\d_]*[eE]\d+|[-+]?[\d_]+[eE][-+]\d+")
"""Unquoted values that are words to PyYAML, and numbers or truth values to ruamel.yaml's YAML 1.1."""
_PLAIN = re.compile(
    r"(?!(?:y|n|yes|no|on|off|true|false|null)$)(?:[a-z]|\.{0,2}/)[a-z0-9_./-]*", re.IGNORECASE | re.ASCII
)
"""Text that needs no quotes."""
_STANDARD_TAG = "tag:yaml.org,2002:"


def yaml_text(value: Any) -> str:
    """A value in flow style that all YAML readers read as the same value."""
    match value:
        case float():
            return float_text(value).replace("inf", ".inf").replace("nan", ".nan")
        case str() if _PLAIN.fullmatch(value):
            return value
        case Mapping():
            return "{" + ", ".join(f"{yaml_text(key)}: {yaml_text(item)}" for key, item in value.items()) + "}"
        case list() | tuple():
            return "[" + ", ".join(yaml_text(item) for item in value) + "]"
        case _:
            return json.dumps(value, ensure_ascii=False, default=str)


def read_yaml(text: str, source: str) -> dict[Any, Any]:
    """The values as PyYAML reads them. Raises DeriveError with file and line."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    loader = YAML(typ="safe", pure=True)
    loader.version = (1, 1)
    try:
        root = loader.compose(text)
        value = {} if root is None else _value(loader, root, ())
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = None if mark is None else mark.line + 1
        problem = error.problem or error.context or "syntax error"
        raise DeriveError(f"{read_location(line, source)}: not readable as YAML: {problem}") from error
    except (YAMLError, ValueError) as error:
        first = str(error).strip().splitlines()[0]
        raise DeriveError(f"{source}: not readable as YAML: {first}") from error
    if not isinstance(value, dict | None):
        raise DeriveError(f"{source}: the config must be a mapping of keys to values")
    return value or {}


def _value(loader: Any, node: Any, above: tuple[int, ...]) -> Any:
    """The value of a node. Of two equal keys the last one counts; an unknown tag (``!path``) stays with its text."""
    from ruamel.yaml.nodes import MappingNode, SequenceNode

    if id(node) in above:
        return "recursive alias"
    inside = (*above, id(node))
    if isinstance(node, SequenceNode):
        return [_value(loader, item, inside) for item in node.value]
    if isinstance(node, MappingNode):
        pairs = ((_value(loader, key, inside), _value(loader, value, inside)) for key, value in node.value)
        return {key if isinstance(key, Hashable) else repr(key): value for key, value in pairs}
    tag = str(node.tag)
    if not tag.startswith(_STANDARD_TAG) or tag.endswith((":merge", ":value")):
        return node.value if tag.startswith(_STANDARD_TAG) else (tag, node.value)
    return node.value if not node.style and _WORDS.fullmatch(node.value) else loader.constructor.construct_object(node)


def edit_yaml(text: str, edits: Sequence[Edit], source: str) -> str:
    """The text with the edits. Raises DeriveError if that does not give exactly the intended values."""
    return _edited(text, edits, source, read_yaml, _round_trip)


def _round_trip(text: str, edit: Edit, _before: dict[Any, Any], _source: str) -> Iterator[str]:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    editor = YAML(typ="rt", pure=True)
    editor.allow_duplicate_keys = True
    editor.preserve_quotes = True
    editor.width = 4096
    try:
        data = editor.load(text)
        comments = text if data is None else ""
        node = data = editor.map() if data is None else data
        for name in edit.path[:-1]:
            if isinstance(node, dict) and node.get(name) is None:
                node[name] = editor.map()
            node = node[name]
        if edit.value is REMOVED:
            del node[edit.path[-1]]
        else:
            node[edit.path[-1]] = editor.load(yaml_text(edit.value))
        out = io.StringIO()
        editor.dump(data, out)
    except (YAMLError, KeyError, TypeError, ValueError, AttributeError, IndexError):
        return
    yield comments + out.getvalue()
