"""Single values changed in JSON, TOML and YAML texts; all else stays as it was written."""

import contextlib
import io
import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from .nested_keys import REMOVED, DeriveError, Edit, KeyPath, dotted, edited, float_text, present, read_location, same

if TYPE_CHECKING:
    from ruamel.yaml.nodes import MappingNode, Node, ScalarNode


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
    for edit in edits:
        before = read_toml(text, source)
        intended = edited(before, edit)
        if same(before, intended):
            continue
        proven = partial(_is_toml_of, intended)
        text = _first_proven(_candidates(text, edit, before, source), proven, edit, source)
    return text


def _is_toml_of(intended: dict[str, Any], text: str) -> bool:
    return same(tomllib.loads(text), intended)


def _first_proven(candidates: Iterator[str], proven: Callable[[str], bool], edit: Edit, source: str) -> str:
    """The first text that reads as intended. Raises DeriveError if none does."""
    for candidate in candidates:
        with contextlib.suppress(tomllib.TOMLDecodeError, DeriveError):
            if proven(candidate):
                return candidate
    raise DeriveError(
        f"{source}: {dotted(edit.path)} could not be changed without touching other values; write the key on a line "
        "of its own"
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


Dialect = Literal["pyyaml", "core"]
PYYAML: Dialect = "pyyaml"
"""YAML 1.1 as PyYAML's ``safe_load`` resolves it (its ``resolver.py``)."""
CORE: Dialect = "core"
"""The core schema of YAML 1.2, which ruamel.yaml follows."""

_STANDARD_TAG = "tag:yaml.org,2002:"


def _base_60(text: str) -> int:
    sign = -1 if text.startswith("-") else 1
    total = 0
    for digits in text.lstrip("+-").split(":"):
        total = total * 60 + int(digits)
    return sign * total


def _pyyaml_int(text: str) -> int:
    plain = text.replace("_", "")
    sign = -1 if plain.startswith("-") else 1
    digits = plain.lstrip("+-")
    if ":" in digits:
        return _base_60(plain)
    if digits.startswith(("0b", "0x")):
        return sign * int(digits, 0)
    return sign * int(digits, 8 if len(digits) > 1 and digits[0] == "0" else 10)


def _any_float(text: str) -> float:
    plain = text.replace("_", "").lower()
    if plain.endswith((".inf", ".nan")):
        return float(plain.replace(".", ""))
    if ":" in plain:
        sign = -1.0 if plain.startswith("-") else 1.0
        total = 0.0
        for part in plain.lstrip("+-").split(":"):
            total = total * 60 + float(part)
        return sign * total
    return float(plain)


def _core_int(text: str) -> int:
    digits = text.lstrip("+-")
    base = {"0o": 8, "0x": 16}.get(digits[:2], 10)
    number = int(digits[2:] if base != 10 else digits, base)
    return -number if text.startswith("-") else number


_Rule = tuple[re.Pattern[str], Callable[[str], Any]]
_TRUE = frozenset({"true", "yes", "on"})

_RULES: dict[Dialect, tuple[_Rule, ...]] = {
    PYYAML: (
        (re.compile(r"(?:~|null|Null|NULL|)"), lambda _: None),
        (
            re.compile(r"(?:yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF)"),
            lambda t: t.lower() in _TRUE,
        ),
        (
            re.compile(
                r"[-+]?0b[0-1_]+|[-+]?0[0-7_]+|[-+]?(?:0|[1-9][0-9_]*)|[-+]?0x[0-9a-fA-F_]+|[-+]?[1-9][0-9_]*(?::[0-5]?[0-9])+"
            ),
            _pyyaml_int,
        ),
        (
            re.compile(
                r"[-+]?(?:[0-9][0-9_]*)\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?"
                r"|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
            ),
            _any_float,
        ),
    ),
    CORE: (
        (re.compile(r"(?:~|null|Null|NULL|)"), lambda _: None),
        (re.compile(r"(?:true|True|TRUE|false|False|FALSE)"), lambda t: t.lower() == "true"),
        (re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+"), _core_int),
        (
            re.compile(
                r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
            ),
            _any_float,
        ),
    ),
}


def resolve_plain(text: str, dialect: Dialect) -> Any:
    """The value of an unquoted scalar. Dates stay strings."""
    for pattern, convert in _RULES[dialect]:
        if pattern.fullmatch(text):
            try:
                return convert(text)
            except ValueError:
                return text
    return text


def scalar_value(node: "ScalarNode", dialect: Dialect) -> Any:
    """The value of a scalar node; an unknown tag (``!path``) is returned with the text."""
    tag = str(node.tag)
    if not tag.startswith(_STANDARD_TAG):
        return (tag, node.value)
    return node.value if node.style else resolve_plain(node.value, dialect)


_PLAIN = re.compile(r"[A-Za-z_./][A-Za-z0-9_./-]*")
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def _quoted(text: str) -> str:
    def escape(ch: str) -> str:
        if ch in _ESCAPES:
            return _ESCAPES[ch]
        if ch.isprintable():
            return ch
        return f"\\U{ord(ch):08x}"

    return '"' + "".join(escape(ch) for ch in text) + '"'


def yaml_text(value: Any) -> str:
    """A value in flow style that both dialects read as the same value."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            if value != value:  # noqa: PLR0124
                return ".nan"
            return float_text(value).replace("inf", ".inf")
        case str():
            plain = _PLAIN.fullmatch(value) and all(resolve_plain(value, dialect) == value for dialect in _RULES)
            return value if plain else _quoted(value)
        case Mapping():
            return "{" + ", ".join(f"{yaml_text(key)}: {yaml_text(item)}" for key, item in value.items()) + "}"
        case Sequence():
            return "[" + ", ".join(yaml_text(item) for item in value) + "]"
        case _:
            return _quoted(str(value))


# Changes single values in a YAML text and keeps comments and layout. Every result is checked.
#
# ruamel.yaml's round trip re-indents lists, so an edit first replaces only the characters of the value; the round trip
# is the second way. The check reads old and new text in both dialects that trainers use (PyYAML's 1.1 and the 1.2 core
# schema, which differ in ``1e-4``, ``on`` and ``010``) and compares all values.

_BLOCK_STYLES = ("|", ">")


def read_yaml(text: str, source: str, dialect: Dialect = PYYAML) -> dict[Any, Any]:
    """The values as a reader of that dialect sees them. Raises DeriveError with file and line."""
    root = _compose(text, source)
    if root is None:
        return {}
    value = _construct(root, dialect, ())
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise DeriveError(f"{source}: the config must be a mapping of keys to values")
    return value


def edit_yaml(text: str, edits: Sequence[Edit], source: str) -> str:
    """The text with the edits. Raises DeriveError if no way gives exactly the intended values."""
    for edit in edits:
        before = {dialect: read_yaml(text, source, dialect) for dialect in (PYYAML, CORE)}
        intended = {dialect: edited(tree, edit) for dialect, tree in before.items()}
        if same(before[PYYAML], intended[PYYAML]) and same(before[CORE], intended[CORE]):
            continue
        text = _first_proven(
            _yaml_edit_candidates(text, edit, source), partial(_is_yaml_of, intended, source), edit, source
        )
    return text


def _is_yaml_of(intended: dict[Dialect, dict[Any, Any]], source: str, text: str) -> bool:
    return all(same(read_yaml(text, source, dialect), tree) for dialect, tree in intended.items())


def _compose(text: str, source: str) -> Any:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    loader = YAML(typ="rt", pure=True)
    loader.allow_duplicate_keys = True  # as PyYAML, which silently uses the last one
    try:
        return loader.compose(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = None if mark is None else mark.line + 1
        problem = error.problem or error.context or "syntax error"
        raise DeriveError(f"{read_location(line, source)}: not readable as YAML: {problem}") from error
    except YAMLError as error:
        first = str(error).strip().splitlines()[0]
        raise DeriveError(f"{source}: not readable as YAML: {first}") from error


def _construct(node: "Node", dialect: Dialect, above: tuple[int, ...]) -> Any:
    from ruamel.yaml.nodes import MappingNode, ScalarNode, SequenceNode

    if id(node) in above:
        return "recursive alias"
    inside = (*above, id(node))
    match node:
        case ScalarNode():
            return scalar_value(node, dialect)
        case SequenceNode():
            return [_construct(item, dialect, inside) for item in node.value]
        case MappingNode():
            return {
                _hashable(_construct(key, dialect, inside)): _construct(value, dialect, inside)
                for key, value in node.value
            }
        case _:
            return None


def _hashable(key: Any) -> Any:
    return key if isinstance(key, str | int | float | bool | tuple | None) else repr(key)


def _yaml_edit_candidates(text: str, edit: Edit, source: str) -> Iterator[str]:
    root = _compose(text, source)
    if edit.value is not REMOVED:
        yield from _spliced(text, root, edit)
    yield from _round_trip(text, edit)


def _spliced(text: str, root: Any, edit: Edit) -> Iterator[str]:
    """The text with only the characters of the value changed."""
    from ruamel.yaml.nodes import MappingNode, ScalarNode

    newline = "\r\n" if "\r\n" in text else "\n"
    if root is None:
        end = "" if not text or text.endswith("\n") else newline
        yield f"{text}{end}{_pair(edit.path, edit.value)}{newline}"
        return
    node, depth, start = root, 0, 0
    while depth < len(edit.path) and isinstance(node, MappingNode):
        found = _child(node, edit.path[depth])
        if found is None:
            yield _with_pair(text, node, _pair(edit.path[depth:], edit.value), newline)
            return
        key, node = found
        depth, start = depth + 1, node.start_mark.index
        if start == node.end_mark.index:  # an empty value: its mark is that of the next token
            start = text.index(":", key.end_mark.index) + 1
    if node.anchor or (isinstance(node, ScalarNode) and node.style in _BLOCK_STYLES):
        return
    end_ = node.end_mark.index if node.start_mark.index != node.end_mark.index else start
    rest = edit.path[depth:]
    value = f"{{{_pair(rest, edit.value)}}}" if rest else yaml_text(edit.value)
    gap = "" if start > 0 and text[start - 1] in " \t\n" else " "
    yield f"{text[:start]}{gap}{value}{text[end_:]}"


def _child(node: "MappingNode", name: str) -> tuple["Node", "Node"] | None:
    """(key, value) of the last key with that name, as in PyYAML."""
    from ruamel.yaml.nodes import ScalarNode

    found = None
    for key, value in node.value:
        if isinstance(key, ScalarNode) and scalar_value(key, PYYAML) == name:
            found = key, value
    return found


def _pair(path: KeyPath, value: Any) -> str:
    first, *rest = path
    return f"{yaml_text(first)}: {{{_pair(tuple(rest), value)}}}" if rest else f"{yaml_text(first)}: {yaml_text(value)}"


def _with_pair(text: str, node: "MappingNode", pair: str, newline: str) -> str:
    """Insert a new key before the first one of its mapping, whose indentation is known."""
    if node.flow_style or not node.value:
        at = text.index("{", node.start_mark.index) + 1
        return f"{text[:at]}{pair}{', ' if node.value else ''}{text[at:]}"
    mark = node.value[0][0].start_mark
    return f"{text[: mark.index]}{pair}{newline}{' ' * mark.column}{text[mark.index :]}"


def _round_trip(text: str, edit: Edit) -> Iterator[str]:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    editor = YAML(typ="rt", pure=True)
    editor.allow_duplicate_keys = True
    editor.preserve_quotes = True
    editor.width = 4096
    try:
        data = editor.load(text)
        if not present(data, edit.path):
            return
        node = data
        for name in edit.path[:-1]:
            node = node[name]
        if edit.value is REMOVED:
            del node[edit.path[-1]]
        else:
            node[edit.path[-1]] = YAML(typ="rt", pure=True).load(yaml_text(edit.value))
        out = io.StringIO()
        editor.dump(data, out)
    except (YAMLError, KeyError, TypeError, ValueError, AttributeError):
        return
    yield out.getvalue()
