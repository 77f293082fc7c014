"""A reader of pickles that executes nothing.

It walks the opcodes itself (no ``pickle.Unpickler``: that one imports, keeps a process-wide extension cache, calls
``__setstate__`` and grows its memo to whatever index the file names) and builds inert values. Whatever would import,
call or construct goes to an ``Interpreter``, which answers with a description. Size, number of opcodes and memo are
bounded by the bytes of the pickle; there is no recursion.

Source of the opcodes: CPython's ``Lib/pickletools.py``, protocols 0 to 5.
"""

import codecs
import struct
from collections.abc import Callable
from typing import Protocol

from .damage import Corrupt, Sealed, Torn
from .pickle_values import Bag, Global, Instance, Mapping, PickleValue, shown

MAX_PICKLE_BYTES = 256 << 20
"""More than any framework's object tree beside its tensors; beyond it the file is not listed."""
MAX_OPCODES = 40_000_000
_MAX_LONG_TEXT = 4000
"""Digits of a number in text form; Python itself refuses more."""


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


def read_pickle(data: bytes, interpreter: Interpreter, start: int = 0) -> tuple[PickleValue, int]:
    """Walk one pickle in ``data`` from ``start``; returns its value and the offset after its STOP.

    Raises Torn (ends before STOP), Corrupt (no such opcode, wrong operands), Sealed (beyond the limits).
    """
    return _Walk(data, interpreter, start).run()


class _Walk:
    """One pass over one pickle."""

    def __init__(self, data: bytes, interpreter: Interpreter, start: int) -> None:
        self.data = data
        self.at = start
        self.interpreter = interpreter
        self.stack: list[PickleValue] = []
        self.marks: list[list[PickleValue]] = []
        self.memo: dict[int, PickleValue] = {}

    def run(self) -> tuple[PickleValue, int]:
        data, table = self.data, _OPCODES
        size = len(data)
        opcode_at = self.at
        try:
            for _ in range(MAX_OPCODES):
                opcode_at = self.at
                if opcode_at >= size:
                    raise Torn(f"its pickle ends at byte {opcode_at} without STOP")
                opcode = data[opcode_at]
                self.at = opcode_at + 1
                if opcode == _STOP:
                    value = self.stack.pop()
                    return value, self.at
                act = table[opcode]
                if act is None:
                    raise Corrupt(f"its pickle has the unknown opcode {opcode:#04x} at byte {opcode_at}")
                act(self)
        except (IndexError, KeyError, ValueError, TypeError, OverflowError, struct.error, AttributeError) as error:
            # operands of the wrong kind, an empty stack, a memo never written, bytes that are no UTF-8
            raise Corrupt(f"its pickle is damaged at byte {opcode_at}: {shown(str(error) or 'empty stack')}") from error
        raise Sealed(f"its pickle has more than {MAX_OPCODES} opcodes")

    # ------------------------------------------------------------------ operands

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
        return int.from_bytes(self.take(size), "little")

    def line(self) -> bytes:
        end = self.data.find(b"\n", self.at)
        if end < 0:
            raise Torn(f"its pickle is cut inside a line at byte {self.at}")
        line = self.data[self.at : end]
        self.at = end + 1
        return line

    # ------------------------------------------------------------------ stack

    def pop_mark(self) -> list[PickleValue]:
        items = self.stack
        self.stack = self.marks.pop()
        return items

    def pop_tuple(self) -> tuple[PickleValue, ...]:
        arguments = self.stack.pop()
        if not isinstance(arguments, tuple):
            raise TypeError("arguments that are no tuple")
        return arguments

    def extend(self, items: list[PickleValue]) -> None:
        target = self.stack[-1]
        if isinstance(target, list):
            target.extend(items)
        elif isinstance(target, Bag | Instance):
            target.items.extend(items)
        else:
            raise TypeError("items appended to what is no list")

    def set_pairs(self, items: list[PickleValue]) -> None:
        target = self.stack[-1]
        if not isinstance(target, Mapping | Instance):
            raise TypeError("items set in what is no mapping")
        target.pairs.extend(_paired(items))

    def build(self) -> None:
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
        self.stack.append(self.interpreter.name(Global(module, name)))


_Act = Callable[[_Walk], None]


def _push(value: Callable[[_Walk], PickleValue]) -> _Act:
    def act(walk: _Walk) -> None:
        walk.stack.append(value(walk))

    return act


def _constant(value: PickleValue) -> _Act:
    def act(walk: _Walk) -> None:
        walk.stack.append(value)

    return act


def _mark(walk: _Walk) -> None:
    walk.marks.append(walk.stack)
    walk.stack = []


def _pop(walk: _Walk) -> None:
    if walk.stack:
        walk.stack.pop()
    else:
        walk.pop_mark()


def _tuple_of(count: int) -> _Act:
    def act(walk: _Walk) -> None:
        stack = walk.stack
        if len(stack) < count:
            raise IndexError("empty stack")
        items = tuple(stack[-count:])
        del stack[-count:]
        stack.append(items)

    return act


def _marked(make: Callable[[list[PickleValue]], PickleValue]) -> _Act:
    def act(walk: _Walk) -> None:
        items = walk.pop_mark()
        walk.stack.append(make(items))

    return act


def _mapping_of(items: list[PickleValue]) -> Mapping:
    mapping = Mapping()
    mapping.pairs.extend(_paired(items))
    return mapping


def _may_be_key(value: PickleValue, depth: int = 3) -> bool:
    """Whether Python could hash it; tuples are followed a few levels only."""
    if isinstance(value, tuple) and depth:
        return all(_may_be_key(item, depth - 1) for item in value)
    return not isinstance(value, Mapping | list) and not (isinstance(value, Bag) and not value.frozen)


def _paired(items: list[PickleValue]) -> list[tuple[PickleValue, PickleValue]]:
    if len(items) % 2:
        raise ValueError("odd number of items for a mapping")
    keys = items[::2]
    if not all(isinstance(key, str | int) or _may_be_key(key) for key in keys):
        raise TypeError("a key that cannot be one")
    return list(zip(keys, items[1::2], strict=True))


def _put(size: int) -> _Act:
    def act(walk: _Walk) -> None:
        walk.memo[walk.number(size)] = walk.stack[-1]

    return act


def _get(size: int) -> _Act:
    def act(walk: _Walk) -> None:
        walk.stack.append(walk.memo[walk.number(size)])

    return act


def _put_text(walk: _Walk) -> None:
    walk.memo[int(walk.line())] = walk.stack[-1]


def _memoize(walk: _Walk) -> None:
    walk.memo[len(walk.memo)] = walk.stack[-1]


def _long_text(walk: _Walk) -> int:
    line = walk.line().rstrip(b"L")
    if len(line) > _MAX_LONG_TEXT:
        raise ValueError("number with too many digits")
    return int(line)


def _int_text(walk: _Walk) -> int | bool:
    line = walk.line()
    if line in {b"00", b"01"}:
        return line == b"01"
    if len(line) > _MAX_LONG_TEXT:
        raise ValueError("number with too many digits")
    return int(line, 0)


def _string_text(walk: _Walk) -> str:
    line = walk.line()
    if len(line) < 2 or line[:1] not in {b"'", b'"'} or line[-1:] != line[:1]:
        raise ValueError("string without quotes")
    decoded, _ = codecs.escape_decode(line[1:-1])
    return bytes(decoded).decode("latin-1")


def _signed(size: int) -> Callable[[_Walk], int]:
    return lambda walk: int.from_bytes(walk.take(size), "little", signed=True)


def _long(size: int) -> Callable[[_Walk], int]:
    return lambda walk: int.from_bytes(walk.take(walk.number(size)), "little", signed=True)


def _text(size: int) -> Callable[[_Walk], str]:
    return lambda walk: walk.take(walk.number(size)).decode("utf-8", "surrogatepass")


def _latin(size: int) -> Callable[[_Walk], str]:
    return lambda walk: walk.take(walk.number(size)).decode("latin-1")


def _bytes(size: int) -> Callable[[_Walk], bytes]:
    return lambda walk: walk.take(walk.number(size))


def _float(walk: _Walk) -> float:
    value: float = struct.unpack(">d", walk.take(8))[0]
    return value


def _global(walk: _Walk) -> None:
    module = walk.line().decode("utf-8")
    walk.global_name(module, walk.line().decode("utf-8"))


def _stack_global(walk: _Walk) -> None:
    name = walk.stack.pop()
    module = walk.stack.pop()
    if not isinstance(name, str) or not isinstance(module, str):
        raise TypeError("a name that is no text")
    walk.global_name(module, name)


def _extension(size: int) -> _Act:
    def act(walk: _Walk) -> None:
        walk.global_name("copyreg.extension", str(walk.number(size)))

    return act


def _reduce(walk: _Walk) -> None:
    arguments = walk.pop_tuple()
    target = walk.stack.pop()
    walk.stack.append(walk.interpreter.call(target, arguments))


def _new(walk: _Walk) -> None:
    arguments = walk.pop_tuple()
    target = walk.stack.pop()
    walk.stack.append(walk.interpreter.construct(target, arguments))


def _new_with_keywords(walk: _Walk) -> None:
    keywords = walk.stack.pop()
    arguments = walk.pop_tuple()
    target = walk.stack.pop()
    made = walk.interpreter.construct(target, arguments)
    if isinstance(made, Instance):
        made.state.append(keywords)
    walk.stack.append(made)


def _inst(walk: _Walk) -> None:
    module = walk.line().decode("utf-8")
    target = walk.interpreter.name(Global(module, walk.line().decode("utf-8")))
    arguments = tuple(walk.pop_mark())
    walk.stack.append(walk.interpreter.call(target, arguments))


def _obj(walk: _Walk) -> None:
    items = walk.pop_mark()
    walk.stack.append(walk.interpreter.call(items[0], tuple(items[1:])))


def _persistent_text(walk: _Walk) -> None:
    walk.stack.append(walk.interpreter.persistent(walk.line().decode("latin-1")))


def _persistent(walk: _Walk) -> None:
    walk.stack.append(walk.interpreter.persistent(walk.stack.pop()))


def _proto(walk: _Walk) -> None:
    protocol = walk.number(1)
    if protocol > 5:
        raise ValueError(f"protocol {protocol}")


def _frame(walk: _Walk) -> None:
    length = walk.number(8)
    if walk.at + length > len(walk.data):
        raise Torn(f"its pickle is cut: a frame of {length} bytes begins at byte {walk.at}")


def _append(walk: _Walk) -> None:
    item = walk.stack.pop()
    walk.extend([item])


def _setitem(walk: _Walk) -> None:
    value = walk.stack.pop()
    key = walk.stack.pop()
    walk.set_pairs([key, value])


_STOP = ord(".")
_ACTS: dict[bytes, _Act] = {
    b"(": _mark,
    b"0": _pop,
    b"1": lambda walk: walk.pop_mark().clear(),
    b"2": _push(lambda walk: walk.stack[-1]),
    b"F": _push(lambda walk: float(walk.line())),
    b"I": _push(_int_text),
    b"J": _push(_signed(4)),
    b"K": _push(lambda walk: walk.number(1)),
    b"L": _push(_long_text),
    b"M": _push(lambda walk: walk.number(2)),
    b"N": _constant(None),
    b"P": _persistent_text,
    b"Q": _persistent,
    b"R": _reduce,
    b"S": _push(_string_text),
    b"T": _push(_latin(4)),
    b"U": _push(_latin(1)),
    b"V": _push(lambda walk: walk.line().decode("raw-unicode-escape")),
    b"X": _push(_text(4)),
    b"a": _append,
    b"b": lambda walk: walk.build(),
    b"c": _global,
    b"d": _marked(_mapping_of),
    b"}": _push(lambda _walk: Mapping()),
    b"e": lambda walk: walk.extend(walk.pop_mark()),
    b"g": _push(lambda walk: walk.memo[int(walk.line())]),
    b"h": _get(1),
    b"i": _inst,
    b"j": _get(4),
    b"l": _marked(list),
    b"]": _push(lambda _walk: []),
    b"o": _obj,
    b"p": _put_text,
    b"q": _put(1),
    b"r": _put(4),
    b"s": _setitem,
    b"t": _marked(tuple),
    b")": _constant(()),
    b"u": lambda walk: walk.set_pairs(walk.pop_mark()),
    b"G": _push(_float),
    b"\x80": _proto,
    b"\x81": _new,
    b"\x82": _extension(1),
    b"\x83": _extension(2),
    b"\x84": _extension(4),
    b"\x85": _tuple_of(1),
    b"\x86": _tuple_of(2),
    b"\x87": _tuple_of(3),
    b"\x88": _constant(True),
    b"\x89": _constant(False),
    b"\x8a": _push(_long(1)),
    b"\x8b": _push(_long(4)),
    b"B": _push(_bytes(4)),
    b"C": _push(_bytes(1)),
    b"\x8c": _push(_text(1)),
    b"\x8d": _push(_text(8)),
    b"\x8e": _push(_bytes(8)),
    b"\x8f": _push(lambda _walk: Bag([])),
    b"\x90": lambda walk: walk.extend(walk.pop_mark()),
    b"\x91": _marked(lambda items: Bag(items, frozen=True)),
    b"\x92": _new_with_keywords,
    b"\x93": _stack_global,
    b"\x94": _memoize,
    b"\x95": _frame,
    b"\x96": _push(_bytes(8)),
}
_OPCODES: list[_Act | None] = [_ACTS.get(bytes([code])) for code in range(256)]
