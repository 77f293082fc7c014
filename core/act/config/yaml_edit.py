"""Changes single values in a YAML text and keeps comments and layout. Every result is checked.

ruamel.yaml's round trip re-indents lists, so an edit first replaces only the characters of the value; the round trip
is the second way. The check reads old and new text in both dialects that trainers use (PyYAML's 1.1 and the 1.2 core
schema, which differ in ``1e-4``, ``on`` and ``010``) and compares all values.
"""

import io
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from .nested_keys import REMOVED, DeriveError, Edit, KeyPath, edited, present, read_location, same
from .yaml_scalars import CORE, PYYAML, Dialect, scalar_value, yaml_text

if TYPE_CHECKING:
    from ruamel.yaml.nodes import MappingNode, Node

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
        text = _first_proven(text, edit, intended, source)
    return text


def _first_proven(text: str, edit: Edit, intended: dict[Dialect, dict[Any, Any]], source: str) -> str:
    for candidate in _candidates(text, edit, source):
        try:
            if all(same(read_yaml(candidate, source, dialect), tree) for dialect, tree in intended.items()):
                return candidate
        except DeriveError:
            continue
    key = ".".join(edit.path)
    raise DeriveError(
        f"{source}: {key} could not be changed without touching other values; write the key on a line of its own"
    )


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


def _candidates(text: str, edit: Edit, source: str) -> Iterator[str]:
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
