"""Searches in inert pickle values: every tensor with its path, and plain numbers by key."""

from collections.abc import Iterator

from .pickle_values import Bag, Instance, Mapping, PickleValue, TensorView

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
