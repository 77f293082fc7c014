"""Nested mappings of a config file: finding a key, and the values that the file must have after a change."""

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from ...model.change import Change, ChangeOf

KeyPath = tuple[Any, ...]
"""Keys, and positions in lists, from the root to a value."""


class DeriveError(Exception):
    """A launch cannot be derived. The message is a sentence for the user: what, where, what to do."""


class Removed:
    """Type of REMOVED, the value of a key that is to be removed."""

    def __repr__(self) -> str:
        return "REMOVED"


REMOVED = Removed()


class Edit(msgspec.Struct, frozen=True):
    """A value to be set at a place; ``REMOVED`` removes the key."""

    path: KeyPath
    value: Any


def read_location(error_line: int | None, source: str) -> str:
    """``FILE:LINE``, or the file alone."""
    return source if error_line is None else f"{source}:{error_line}"


def leaves(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Settings as (dotted key, value): ``{"vae": {"tiling": True}}`` gives ``("vae.tiling", True)``."""
    for key, value in settings.items():
        if isinstance(value, Mapping):
            yield from leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def occurrences(tree: Mapping[Any, Any], key: str, depth: int | None) -> list[KeyPath]:
    """All places of a key of that name, at most ``depth`` keys deep. Lists are not searched."""
    found: list[KeyPath] = []
    for name, value in tree.items():
        if name == key:
            found.append((name,))
        if isinstance(value, Mapping) and isinstance(name, str) and (depth is None or depth > 1):
            below = occurrences(value, key, None if depth is None else depth - 1)
            found.extend((name, *rest) for rest in below)
    return found


def locate(tree: Mapping[Any, Any], key: str, source: str, *, sections_ignored: bool) -> tuple[KeyPath, ...]:
    """The places to write ``key`` to.

    A dotted key is a path. A plain key is replaced where it is, and added at the top level if it is nowhere.
    ``sections_ignored``: the framework merges its sections, so a key that is found twice is written twice.
    """
    found: list[KeyPath]
    if key in tree:
        found = [(key,)]
        if sections_ignored:
            found = occurrences(tree, key, 2)
    elif "." in key:
        found = [tuple(key.split("."))]
    else:
        found = occurrences(tree, key, 2 if sections_ignored else None) or [(key,)]
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


def present(tree: Mapping[Any, Any], path: KeyPath) -> bool:
    """Whether the key exists; its value may be null."""
    node: Any = tree
    for name in path:
        if (isinstance(node, list) and isinstance(name, int)) or (isinstance(node, Mapping) and name in node):
            node = node[name]
        else:
            return False
    return True


def dotted(path: KeyPath) -> str:
    """The keys with dots between them."""
    return ".".join(map(str, path))


def value_at(tree: Mapping[Any, Any], path: KeyPath) -> Any:
    """The value at a path, or None."""
    node: Any = tree
    for name in path:
        if not isinstance(node, Mapping):
            return None
        node = node.get(name)
    return node


def edited(tree: Mapping[Any, Any], edit: Edit) -> dict[Any, Any]:
    """A copy of the tree after the edit. Sections that are missing or null are made."""
    result: dict[Any, Any] = copy.deepcopy(dict(tree))
    node: Any = result
    for name in edit.path[:-1]:
        if isinstance(node, dict) and node.get(name) is None:
            if edit.value is REMOVED:
                return result
            node[name] = {}
        node = node[name]
    if edit.value is REMOVED:
        node.pop(edit.path[-1], None)
    else:
        node[edit.path[-1]] = copy.deepcopy(edit.value)
    return result


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
    merged: dict[tuple[str, str], Change] = {}
    for change in made:
        first = merged.pop((change.where, change.key), None)
        merged[change.where, change.key] = (
            change if first is None else msgspec.structs.replace(change, before=first.before)
        )
    return [change for change in merged.values() if not same(change.before, change.after)]
