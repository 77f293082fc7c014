"""What each opcode of a pickle does to a walk. STOP is the walk's own business.

Source: CPython's ``Lib/pickletools.py``, protocols 0 to 5. Out-of-band buffers (NEXT_BUFFER, READONLY_BUFFER) have no
place in a file and are unknown here.
"""

import codecs
import struct
from collections.abc import Callable

from .damage import Torn
from .pickle_values import Bag, Global, Instance, Mapping, PickleValue
from .pickle_walk import PickleWalk, paired

_MAX_LONG_TEXT = 4000
"""Digits of a number in text form; Python itself refuses more."""

_Act = Callable[[PickleWalk], None]


def _push(value: Callable[[PickleWalk], PickleValue]) -> _Act:
    def act(walk: PickleWalk) -> None:
        walk.stack.append(value(walk))

    return act


def _constant(value: PickleValue) -> _Act:
    def act(walk: PickleWalk) -> None:
        walk.stack.append(value)

    return act


def _mark(walk: PickleWalk) -> None:
    walk.marks.append(walk.stack)
    walk.stack = []


def _pop(walk: PickleWalk) -> None:
    if walk.stack:
        walk.stack.pop()
    else:
        walk.pop_mark()


def _tuple_of(count: int) -> _Act:
    def act(walk: PickleWalk) -> None:
        stack = walk.stack
        if len(stack) < count:
            raise IndexError("empty stack")
        items = tuple(stack[-count:])
        del stack[-count:]
        stack.append(items)

    return act


def _marked(make: Callable[[list[PickleValue]], PickleValue]) -> _Act:
    def act(walk: PickleWalk) -> None:
        items = walk.pop_mark()
        walk.stack.append(make(items))

    return act


def _mapping_of(items: list[PickleValue]) -> Mapping:
    mapping = Mapping()
    mapping.pairs.extend(paired(items))
    return mapping


def _put(size: int) -> _Act:
    def act(walk: PickleWalk) -> None:
        walk.memo[walk.number(size)] = walk.stack[-1]

    return act


def _get(size: int) -> _Act:
    def act(walk: PickleWalk) -> None:
        walk.stack.append(walk.memo[walk.number(size)])

    return act


def _put_text(walk: PickleWalk) -> None:
    walk.memo[int(walk.line())] = walk.stack[-1]


def _memoize(walk: PickleWalk) -> None:
    walk.memo[len(walk.memo)] = walk.stack[-1]


def _long_text(walk: PickleWalk) -> int:
    line = walk.line().rstrip(b"L")
    if len(line) > _MAX_LONG_TEXT:
        raise ValueError("number with too many digits")
    return int(line)


def _int_text(walk: PickleWalk) -> int | bool:
    line = walk.line()
    if line in {b"00", b"01"}:
        return line == b"01"
    if len(line) > _MAX_LONG_TEXT:
        raise ValueError("number with too many digits")
    return int(line, 0)


def _string_text(walk: PickleWalk) -> str:
    line = walk.line()
    if len(line) < 2 or line[:1] not in {b"'", b'"'} or line[-1:] != line[:1]:
        raise ValueError("string without quotes")
    decoded, _ = codecs.escape_decode(line[1:-1])
    return bytes(decoded).decode("latin-1")


def _signed(size: int) -> Callable[[PickleWalk], int]:
    return lambda walk: int.from_bytes(walk.take(size), "little", signed=True)


def _long(size: int) -> Callable[[PickleWalk], int]:
    return lambda walk: int.from_bytes(walk.take(walk.number(size)), "little", signed=True)


def _text(size: int) -> Callable[[PickleWalk], str]:
    return lambda walk: walk.take(walk.number(size)).decode("utf-8", "surrogatepass")


def _latin(size: int) -> Callable[[PickleWalk], str]:
    return lambda walk: walk.take(walk.number(size)).decode("latin-1")


def _bytes(size: int) -> Callable[[PickleWalk], bytes]:
    return lambda walk: walk.take(walk.number(size))


def _float(walk: PickleWalk) -> float:
    value: float = struct.unpack(">d", walk.take(8))[0]
    return value


def _global(walk: PickleWalk) -> None:
    module = walk.line().decode("utf-8")
    walk.global_name(module, walk.line().decode("utf-8"))


def _stack_global(walk: PickleWalk) -> None:
    name = walk.stack.pop()
    module = walk.stack.pop()
    if not isinstance(name, str) or not isinstance(module, str):
        raise TypeError("a name that is no text")
    walk.global_name(module, name)


def _extension(size: int) -> _Act:
    def act(walk: PickleWalk) -> None:
        walk.global_name("copyreg.extension", str(walk.number(size)))

    return act


def _reduce(walk: PickleWalk) -> None:
    arguments = walk.pop_tuple()
    target = walk.stack.pop()
    walk.stack.append(walk.interpreter.call(target, arguments))


def _new(walk: PickleWalk) -> None:
    arguments = walk.pop_tuple()
    target = walk.stack.pop()
    walk.stack.append(walk.interpreter.construct(target, arguments))


def _new_with_keywords(walk: PickleWalk) -> None:
    keywords = walk.stack.pop()
    arguments = walk.pop_tuple()
    target = walk.stack.pop()
    made = walk.interpreter.construct(target, arguments)
    if isinstance(made, Instance):
        made.state.append(keywords)
    walk.stack.append(made)


def _inst(walk: PickleWalk) -> None:
    module = walk.line().decode("utf-8")
    target = walk.interpreter.name(Global(module, walk.line().decode("utf-8")))
    arguments = tuple(walk.pop_mark())
    walk.stack.append(walk.interpreter.call(target, arguments))


def _obj(walk: PickleWalk) -> None:
    items = walk.pop_mark()
    walk.stack.append(walk.interpreter.call(items[0], tuple(items[1:])))


def _persistent_text(walk: PickleWalk) -> None:
    walk.stack.append(walk.interpreter.persistent(walk.line().decode("latin-1")))


def _persistent(walk: PickleWalk) -> None:
    walk.stack.append(walk.interpreter.persistent(walk.stack.pop()))


def _proto(walk: PickleWalk) -> None:
    protocol = walk.number(1)
    if protocol > 5:
        raise ValueError(f"protocol {protocol}")


def _frame(walk: PickleWalk) -> None:
    length = walk.number(8)
    if walk.at + length > len(walk.data):
        raise Torn(f"its pickle is cut: a frame of {length} bytes begins at byte {walk.at}")


def _append(walk: PickleWalk) -> None:
    item = walk.stack.pop()
    walk.extend([item])


def _setitem(walk: PickleWalk) -> None:
    value = walk.stack.pop()
    key = walk.stack.pop()
    walk.set_pairs([key, value])


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
OPCODES: list[_Act | None] = [_ACTS.get(bytes([code])) for code in range(256)]
