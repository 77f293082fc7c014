"""What a pickle describes, as inert values: nothing here can be called, imported, hashed or compared by content."""

from collections.abc import Iterator
from typing import Any

from ...model.text import printable
from .elements import Element

PickleValue = Any
"""None, bool, int, float, str, bytes, tuple, list, or one of the classes below."""


class Global:
    """A name that the pickle imports. Nothing is imported here."""

    __slots__ = ("module", "name")

    def __init__(self, module: str, name: str) -> None:
        self.module = module
        self.name = name

    @property
    def dotted(self) -> str:
        """``module.name``, shortened, with control characters made visible."""
        return shown(f"{self.module}.{self.name}")


class Mapping:
    """A dict or one of its kinds. A list of pairs: hashing a foreign key could recurse without limit."""

    __slots__ = ("pairs",)

    def __init__(self) -> None:
        self.pairs: list[tuple[PickleValue, PickleValue]] = []

    def get(self, key: str) -> PickleValue:
        """The last value stored under a string key, or None."""
        for known, value in reversed(self.pairs):
            if isinstance(known, str) and known == key:
                return value
        return None

    def keys(self) -> list[str]:
        """The string keys in order."""
        return [key for key, _ in self.pairs if isinstance(key, str)]


class Bag:
    """A set or frozenset, in the order stored."""

    __slots__ = ("frozen", "items")

    def __init__(self, items: list[PickleValue], *, frozen: bool = False) -> None:
        self.items = items
        self.frozen = frozen


class Instance:
    """The description of an object or of a call."""

    __slots__ = ("arguments", "items", "of", "pairs", "state")

    def __init__(self, of: str, arguments: tuple[PickleValue, ...]) -> None:
        self.of = of
        self.arguments = arguments
        self.state: list[PickleValue] = []
        self.items: list[PickleValue] = []
        self.pairs: list[tuple[PickleValue, PickleValue]] = []


class Storage:
    """The bytes of tensors, stored beside the pickle under ``key``. ``numel`` elements; ``element`` None: bytes."""

    __slots__ = ("element", "key", "numel", "offset")

    def __init__(self, key: str, element: Element | None, numel: int, offset: int = 0) -> None:
        self.key = key
        self.element = element
        self.numel = numel
        self.offset = offset


class TensorView:
    """A tensor over a storage; sizes in elements. ``storage`` None: no bytes (meta device)."""

    __slots__ = ("element", "offset", "shape", "storage", "strides")

    def __init__(
        self,
        storage: Storage | None,
        element: Element,
        offset: int,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
    ) -> None:
        self.storage = storage
        self.element = element
        self.offset = offset
        self.shape = shape
        self.strides = strides


def shown(name: str, limit: int = 120) -> str:
    """A foreign name made safe to print: no control characters, bounded length."""
    visible = printable(name[: limit + 1])
    return visible if len(visible) <= limit else visible[: limit - 1] + "…"


# Searches in these values: every tensor with its path, and plain numbers by key.

_MAX_PATH = 200


def tensors_in(root: PickleValue) -> Iterator[tuple[str, TensorView]]:
    """Every tensor view, with a dotted path (``state.12.exp_avg``).

    Each object is visited once, without recursion: files may share objects, nest them deeply and form cycles.
    """
    seen: set[int] = set()
    pending: list[tuple[str, PickleValue]] = [("", root)]
    while pending:
        path, value = pending.pop()
        if isinstance(value, TensorView):
            yield path, value
            continue
        if isinstance(value, Mapping | Instance | Bag | list | tuple):
            if id(value) in seen:
                continue
            seen.add(id(value))
            pending.extend(reversed(list(_children(path, value))))


def _children(path: str, value: PickleValue) -> Iterator[tuple[str, PickleValue]]:
    if isinstance(value, Mapping):
        yield from _pairs(path, value.pairs)
    elif isinstance(value, Instance):
        for item in (*value.arguments, *value.state):
            if isinstance(item, Mapping):
                yield from _pairs(path, item.pairs)
            else:
                yield path, item
        yield from _pairs(path, value.pairs)
        yield from _items(path, value.items)
    elif isinstance(value, Bag):
        yield from _items(path, value.items)
    elif isinstance(value, list | tuple):
        yield from _items(path, value)


def _pairs(path: str, pairs: list[tuple[PickleValue, PickleValue]]) -> Iterator[tuple[str, PickleValue]]:
    for key, item in pairs:
        if _is_container(item):
            yield _join(path, key), item
        if _is_container(key):
            yield path, key


def _items(path: str, items: list[PickleValue] | tuple[PickleValue, ...]) -> Iterator[tuple[str, PickleValue]]:
    for index, item in enumerate(items):
        if _is_container(item):
            yield _join(path, index), item


def _is_container(value: PickleValue) -> bool:
    return isinstance(value, TensorView | Mapping | Instance | Bag | list | tuple)


def _join(path: str, key: PickleValue) -> str:
    if len(path) >= _MAX_PATH:
        return path
    if isinstance(key, str):
        part = key[:_MAX_PATH]
    elif isinstance(key, int) and not isinstance(key, bool):
        part = str(key) if -(1 << 63) <= key < 1 << 63 else "?"
    else:
        part = "?"
    joined = f"{path}.{part}" if path else part
    return joined if len(joined) < _MAX_PATH else f"{joined[: _MAX_PATH - 1]}…"


def whole_number(root: PickleValue, keys: tuple[str, ...]) -> int | None:
    """The first of ``keys`` that a mapping holds as a whole number (not negative)."""
    if not isinstance(root, Mapping):
        return None
    for key in keys:
        value = root.get(key)
        if isinstance(value, bool):
            continue
        if isinstance(value, int) and 0 <= value < 1 << 53:
            return value
        if isinstance(value, float) and value.is_integer() and 0 <= value < 1 << 53:
            return int(value)
    return None
