"""Single values changed in JSON, TOML and YAML texts; all else stays as it was written."""

import contextlib
import copy
import io
import json
import re
import tomllib
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from ...model.preset import Change, ChangeOf, one_each

# Nested mappings of a config file: finding a key, and the values that the file must have after a change.

KeyPath = tuple[Any, ...]
"""Keys, and positions in lists, from the root to a value."""


class DeriveError(Exception):
    """A launch cannot be derived. The message is a sentence for the user: what, where, what to do."""


REMOVED: Any = object()
"""The value of a key that is to be removed."""


class Edit(msgspec.Struct, frozen=True):
    """A value to be set at a place; ``REMOVED`` removes the key."""

    path: KeyPath
    value: Any


def read_location(error_line: int | None, source: str) -> str:
    """``FILE:LINE``, or the file alone."""
    return source if error_line is None else f"{source}:{error_line}"


def occurrences(node: Any, key: str, depth: int | None = None, *, lists: bool = False) -> Iterator[KeyPath]:
    """All places of a key of that name, at most ``depth`` keys deep. ``lists``: in tables of lists, too."""
    if isinstance(node, list) and lists:
        node = dict(enumerate(node))
    if not isinstance(node, Mapping):
        return
    for name, value in node.items():
        if name == key:
            yield (name,)
        if depth is None or depth > 1:
            for rest in occurrences(value, key, None if depth is None else depth - 1, lists=lists):
                yield (name, *rest)


def locate(tree: Mapping[Any, Any], key: str, source: str, *, sections_ignored: bool) -> tuple[KeyPath, ...]:
    """The places to write ``key`` to.

    A dotted key is a path. A plain key is replaced where it is, and added at the top level if it is nowhere.
    ``sections_ignored``: the framework merges its sections, so a key that is found twice is written twice.
    """
    found: list[KeyPath]
    if key in tree:
        found = [(key,)]
        if sections_ignored:
            found = list(occurrences(tree, key, 2))
    elif "." in key:
        found = [tuple(key.split("."))]
    else:
        found = list(occurrences(tree, key, 2 if sections_ignored else None)) or [(key,)]
    if len(found) > 1 and not sections_ignored:
        places = ", ".join(".".join(path) for path in found)
        raise DeriveError(f"{source}: {key} is in several places ({places}); write the whole dotted key in the profile")
    for path in found:
        _refuse_misfit(tree, path, source)
    return tuple(found)


def _refuse_misfit(tree: Mapping[Any, Any], path: KeyPath, source: str) -> None:
    node: Any = tree
    for depth, name in enumerate(path[:-1], start=1):
        if not isinstance(node, Mapping) or node.get(name) is None:
            return
        node = node[name]
        if not isinstance(node, Mapping):
            where = ".".join(path[:depth])
            raise DeriveError(f"{source}: {where} is not a section, so {'.'.join(path)} cannot be set in it")
    if isinstance(node, Mapping) and isinstance(node.get(path[-1]), Mapping):
        raise DeriveError(
            f"{source}: {'.'.join(path)} is a section and not a value; name one of its keys in the profile"
        )


def value_at(tree: Mapping[Any, Any], path: KeyPath, otherwise: Any = None) -> Any:
    """The value at a path, which may be null; ``otherwise`` if there is none."""
    node: Any = tree
    for name in path:
        if not (isinstance(node, list) and isinstance(name, int)) and not (isinstance(node, Mapping) and name in node):
            return otherwise
        node = node[name]
    return node


def present(tree: Mapping[Any, Any], path: KeyPath) -> bool:
    """Whether the key exists; its value may be null."""
    return value_at(tree, path, REMOVED) is not REMOVED


def dotted(path: KeyPath) -> str:
    """The keys with dots between them."""
    return ".".join(map(str, path))


def edited(tree: Mapping[Any, Any], edit: Edit) -> dict[Any, Any]:
    """A copy of the tree after the edit. Sections that are missing or null are made."""
    result: dict[Any, Any] = copy.deepcopy(dict(tree))
    if edit.value is not REMOVED or present(tree, edit.path):
        _put(result, edit, copy.deepcopy(edit.value), dict)
    return result


def _put(node: Any, edit: Edit, value: Any, section: Callable[[], Any] | None) -> None:
    """Change a document in place. ``section`` makes a section that is missing or null; None: that is an error."""
    for name in edit.path[:-1]:
        if section is not None and isinstance(node, dict) and node.get(name) is None:
            node[name] = section()
        node = node[name]
    if edit.value is REMOVED:
        del node[edit.path[-1]]
    else:
        node[edit.path[-1]] = value


def same(left: Any, right: Any) -> bool:
    """Whether value and type are equal: ``1``, ``1.0`` and ``True`` differ, NaN equals NaN. Keys in any order."""
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(same(a, b) for a, b in zip(left, right, strict=True))
    if type(left) is not type(right):
        return False
    return bool(left == right) or (isinstance(left, float) and left != left and right != right)  # noqa: PLR0124


def float_text(value: float) -> str:
    """A float in a form that every reader parses as a float: ``1.0e-05``. PyYAML reads ``1e-05`` as a string."""
    text = repr(value)
    mantissa, exponent_mark, exponent = text.partition("e")
    if exponent_mark and "." not in mantissa:
        return f"{mantissa}.0e{exponent}"
    return text


def shown(value: Any) -> str:
    """A value in one printable ASCII line, for comments in files."""
    if value is REMOVED or value is None:
        return "(not set)"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return float_text(value)
    return ascii(value) if isinstance(value, str) else one_line(str(value))


def one_line(text: str) -> str:
    """Printable ASCII without line ends, for a comment that is read in any locale."""
    return "".join(ch if ch.isascii() and ch.isprintable() else ascii(ch)[1:-1] for ch in text)


class Setting(msgspec.Struct, frozen=True):
    """A setting of a profile or a remedy: key, value (``REMOVED``: remove it) and reason.

    ``yields``: applies only if neither config nor command set the key. ``words``: how a preset or a profile writes the
    option; it is added to a command line as it stands.
    """

    key: str
    value: Any
    why: str
    yields: bool = False
    words: tuple[str, ...] = ()
    of: ChangeOf = ""


def net(made: Sequence[Change]) -> list[Change]:
    """One change per setting, from its first ``before`` to its last ``after``; unchanged settings are left out."""
    return [change for change in one_each(made) if not same(change.before, change.after)]


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


def _as_json(text: str, edit: Edit, before: dict[Any, Any], _source: str) -> Iterator[str]:
    indent = _INDENT.search(text)
    yield json.dumps(edited(before, edit), indent=None if indent is None else indent[1], ensure_ascii=False) + "\n"


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
        _put(document, edit, edit.value, None)
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
_CONTROL = re.compile("[\x7f-\x9f\u2028\u2029\ufeff]")
"""Characters that JSON leaves as they are and YAML reads as something else, as line breaks for example."""
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
            text = json.dumps(value, ensure_ascii=False, default=str)
            return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _exact(value: Any) -> Any:
    """The value with plain floats: ruamel.yaml rounds those that it has read itself."""
    if isinstance(value, float):
        return float(value)
    if isinstance(value, list | dict):
        for place in range(len(value)) if isinstance(value, list) else list(value):
            value[place] = _exact(value[place])
    return value


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


def _round_trip(text: str, edit: Edit, _before: dict[Any, Any], _source: str) -> Iterator[str]:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError
    from ruamel.yaml.representer import RoundTripRepresenter

    class Exact(RoundTripRepresenter):
        """Writes new floats with all their digits."""

    Exact.add_representer(
        float, lambda writer, value: writer.represent_scalar(f"{_STANDARD_TAG}float", yaml_text(value))
    )
    editor = YAML(typ="rt", pure=True)
    editor.Representer = Exact
    editor.allow_duplicate_keys = True
    editor.preserve_quotes = True
    editor.width = 4096
    try:
        data = editor.load(text)
        comments = text if data is None else ""
        data = editor.map() if data is None else data
        _put(data, edit, None if edit.value is REMOVED else _exact(editor.load(yaml_text(edit.value))), editor.map)
        out = io.StringIO()
        editor.dump(data, out)
    except (YAMLError, KeyError, TypeError, ValueError, AttributeError, IndexError):
        return
    yield comments + out.getvalue()


class _Format(NamedTuple):
    """``read``: the values of a text as the trainer reads them; ``edited``: texts with an edit, the best first."""

    read: Callable[[str, str], dict[Any, Any]]
    edited: Callable[[str, Edit, dict[Any, Any], str], Iterator[str]]


FORMATS = {
    "toml": _Format(read_toml, _toml_candidates),
    "yaml": _Format(read_yaml, _round_trip),
    "json": _Format(read_json, _as_json),
}


def edit_text(kind: str, text: str, edits: Sequence[Edit], source: str) -> str:
    """The text with the edits, each in the first way that reads as exactly the intended values.

    Raises DeriveError if the text cannot be read, or if no way gives these values.
    """
    way = FORMATS[kind]
    for edit in edits:
        before = way.read(text, source)
        intended = edited(before, edit)
        if same(before, intended):
            continue
        for candidate in way.edited(text, edit, before, source):
            with contextlib.suppress(DeriveError):
                if same(way.read(candidate, source), intended):
                    text = candidate
                    break
        else:
            raise DeriveError(
                f"{source}: {dotted(edit.path)} could not be changed without touching other values; write the key on "
                "a line of its own"
            )
    return text
