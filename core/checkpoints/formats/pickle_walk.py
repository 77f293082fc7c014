"""The state of one pass over a pickle: position, stack, marks and memo."""

import io
from typing import Protocol

from .pickle_values import Bag, Global, Instance, Mapping, PickleValue

_MAX_KEY_ITEMS = 100


class Interpreter(Protocol):
    """Describes imports and calls. It must never import, call or construct."""

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
        """What is stored outside of the pickle under this identity."""
        ...


class PickleWalk:
    """One pass over one pickle. ``at``: offset of the opcode at hand."""

    def __init__(self, data: bytes, interpreter: Interpreter, start: int) -> None:
        self.stream = io.BytesIO(data)
        self.stream.seek(start)
        self.size = len(data)
        self.at = start
        self.interpreter = interpreter
        self.stack: list[PickleValue] = []
        self.marks: list[list[PickleValue]] = []
        self.memo: dict[int, PickleValue] = {}

    def pop_mark(self) -> list[PickleValue]:
        """What was pushed since the last MARK."""
        items = self.stack
        self.stack = self.marks.pop()
        return items

    def pop_arguments(self) -> tuple[PickleValue, ...]:
        """The tuple of a call. Raises TypeError."""
        arguments = self.stack.pop()
        if not isinstance(arguments, tuple):
            raise TypeError("arguments that are not a tuple")
        return arguments

    def extend(self, items: list[PickleValue]) -> None:
        """Append to the list or set on top."""
        target = self.stack[-1]
        if isinstance(target, list):
            target.extend(items)
        elif isinstance(target, Bag | Instance):
            target.items.extend(items)
        else:
            raise TypeError("items appended to a value that is not a list")

    def set_pairs(self, items: list[PickleValue]) -> None:
        """Set keys and values, alternating, in the mapping on top."""
        target = self.stack[-1]
        if not isinstance(target, Mapping | Instance):
            raise TypeError("items set in a value that is not a mapping")
        target.pairs.extend(paired(items))

    def written_name(self, operand: str) -> Global:
        """The name of GLOBAL and INST, which ``genops`` gives as ``"module name"`` with escapes undone.

        The unpickler undoes none, so a name that reads differently from its bytes is refused.
        """
        end = self.stream.tell()
        self.stream.seek(self.at + 1)
        if self.stream.read(end - self.at - 1) != operand.replace(" ", "\n", 1).encode() + b"\n":
            raise TypeError("a name with an escape or a space")
        module, _, name = operand.partition(" ")
        return Global(module, name)


def paired(items: list[PickleValue]) -> list[tuple[PickleValue, PickleValue]]:
    """Keys and values, alternating, as pairs. Raises TypeError."""
    if len(items) % 2:
        raise TypeError("odd number of items for a mapping")
    keys = items[::2]
    if not all(isinstance(key, str | int) or _may_be_key(key) for key in keys):
        raise TypeError("a key that cannot be hashed")
    return list(zip(keys, items[1::2], strict=True))


def _may_be_key(value: PickleValue, depth: int = 3) -> bool:
    """Whether Python could hash it; only small tuples are followed, and a few levels."""
    if isinstance(value, tuple):
        if not depth or len(value) > _MAX_KEY_ITEMS:
            return True
        return all(_may_be_key(item, depth - 1) for item in value)
    return not isinstance(value, Mapping | list) and not (isinstance(value, Bag) and not value.frozen)
