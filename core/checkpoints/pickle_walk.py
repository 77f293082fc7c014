"""The state of a walk over one pickle: its bytes, stack, marks and memo."""

from typing import Protocol

from .damage import Torn
from .pickle_values import Bag, Global, Instance, Mapping, PickleValue

_MAX_KEY_ITEMS = 100


class Interpreter(Protocol):
    """Decides what imports and calls *describe*. It must never import, call or construct."""

    def call(self, target: PickleValue, arguments: tuple[PickleValue, ...]) -> PickleValue:
        """What ``target(*arguments)`` stands for."""
        ...

    def construct(self, target: PickleValue, arguments: tuple[PickleValue, ...]) -> PickleValue:
        """What ``target.__new__(target, *arguments)`` stands for."""
        ...

    def name(self, wanted: Global) -> PickleValue:
        """What an imported name stands for."""
        ...

    def persistent(self, identity: PickleValue) -> PickleValue:
        """What the file's owner stores outside of the pickle under this identity."""
        ...


class PickleWalk:
    """One pass over one pickle. Operands are taken from ``data`` at ``at``. Errors of operands are Python's own."""

    def __init__(self, data: bytes, interpreter: Interpreter, start: int) -> None:
        self.data = data
        self.at = start
        self.interpreter = interpreter
        self.stack: list[PickleValue] = []
        self.marks: list[list[PickleValue]] = []
        self.memo: dict[int, PickleValue] = {}

    def take(self, size: int) -> bytes:
        """The next ``size`` bytes."""
        end = self.at + size
        if size < 0:
            raise ValueError(f"negative length {size}")
        if end > len(self.data):
            left = len(self.data) - self.at
            raise Torn(f"its pickle is cut: {size} bytes are announced at byte {self.at}, {left} are left")
        taken = self.data[self.at : end]
        self.at = end
        return taken

    def number(self, size: int) -> int:
        """A little-endian number without sign."""
        return int.from_bytes(self.take(size), "little")

    def line(self) -> bytes:
        """The bytes up to the next newline, which is passed."""
        end = self.data.find(b"\n", self.at)
        if end < 0:
            raise Torn(f"its pickle is cut inside a line at byte {self.at}")
        line = self.data[self.at : end]
        self.at = end + 1
        return line

    def pop_mark(self) -> list[PickleValue]:
        """What was pushed since the last MARK."""
        items = self.stack
        self.stack = self.marks.pop()
        return items

    def pop_tuple(self) -> tuple[PickleValue, ...]:
        """The arguments of a call."""
        arguments = self.stack.pop()
        if not isinstance(arguments, tuple):
            raise TypeError("arguments that are no tuple")
        return arguments

    def extend(self, items: list[PickleValue]) -> None:
        """Append to the list or set on top."""
        target = self.stack[-1]
        if isinstance(target, list):
            target.extend(items)
        elif isinstance(target, Bag | Instance):
            target.items.extend(items)
        else:
            raise TypeError("items appended to what is no list")

    def set_pairs(self, items: list[PickleValue]) -> None:
        """Set keys and values, alternating, in the mapping on top."""
        target = self.stack[-1]
        if not isinstance(target, Mapping | Instance):
            raise TypeError("items set in what is no mapping")
        target.pairs.extend(paired(items))

    def build(self) -> None:
        """Give the object under the top the state on top."""
        state = self.stack.pop()
        target = self.stack[-1]
        if isinstance(target, Instance):
            target.state.append(state)
        elif isinstance(target, Mapping):
            # a dict subclass with attributes (OrderedDict of a state_dict: ._metadata)
            return
        else:
            raise TypeError("state set on what is no object")

    def global_name(self, module: str, name: str) -> None:
        """Push what an imported name stands for."""
        self.stack.append(self.interpreter.name(Global(module, name)))


def _may_be_key(value: PickleValue, depth: int = 3) -> bool:
    """Whether Python could hash it; only small tuples are followed, and a few levels."""
    if isinstance(value, tuple):
        if not depth or len(value) > _MAX_KEY_ITEMS:
            return True
        return all(_may_be_key(item, depth - 1) for item in value)
    return not isinstance(value, Mapping | list) and not (isinstance(value, Bag) and not value.frozen)


def paired(items: list[PickleValue]) -> list[tuple[PickleValue, PickleValue]]:
    """Keys and values, alternating, as pairs. Raises ValueError, TypeError."""
    if len(items) % 2:
        raise ValueError("odd number of items for a mapping")
    keys = items[::2]
    if not all(isinstance(key, str | int) or _may_be_key(key) for key in keys):
        raise TypeError("a key that cannot be one")
    return list(zip(keys, items[1::2], strict=True))
