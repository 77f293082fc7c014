"""What a pickle describes, as inert values: nothing here can be called, imported, hashed or compared by content."""

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
