"""A reader of pickles that executes nothing.

``pickletools.genops`` of the standard library decodes the opcodes and their operands; what each opcode does to the
stack and the memo stands here, and builds inert values. What would import, call or construct goes to the interpreter,
which answers with a description. No ``pickle.Unpickler``: that one imports, calls ``__setstate__``, hashes foreign
keys, keeps a process-wide extension cache and grows its memo to whatever index the file names.
Size, number of opcodes and memo are bounded by the bytes of the pickle; there is no recursion.

Measured against picklescan and fickling: docs/decisions/0018-pickle-safety.md.
"""

import io
import pickletools
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, cast

from .byte_range import Corrupt, Opaque, Torn
from .tensors import Bag, Global, Instance, Mapping, PickleValue, shown
from .torch_objects import TorchInterpreter

MAX_PICKLE_BYTES = 256 << 20
"""Larger than the object tree of any framework's file; a larger pickle is not listed."""
MAX_OPCODES = 20_000_000
"""Bounds memory and time: about a gigabyte and ten seconds at the very worst."""
_NEWEST_PROTOCOL = 5


_MAX_KEY_ITEMS = 100


class PickleWalk:
    """One pass over one pickle. ``at``: offset of the opcode at hand."""

    def __init__(self, data: bytes, interpreter: TorchInterpreter, start: int) -> None:
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


def read_pickle(data: bytes, interpreter: TorchInterpreter, start: int = 0) -> tuple[PickleValue, int]:
    """Read one pickle in ``data`` from ``start``; returns its value and the offset after its STOP.

    Raises Torn (ends before STOP), Corrupt (no such opcode, wrong operands), Opaque (beyond the limits).
    """
    walk = PickleWalk(data, interpreter, start)
    acts, stream, name = _ACTS, walk.stream, ""
    # a stream that knows its position gives that of each opcode; genops ends after STOP
    operations = cast("Iterator[tuple[pickletools.OpcodeInfo, Any, int]]", pickletools.genops(stream))
    try:
        for opcode, operand, walk.at in islice(operations, MAX_OPCODES):
            name = opcode.name
            acts[name](walk, operand)
        if name == "STOP":
            return walk.stack.pop(), walk.at + 1
    except (IndexError, KeyError, TypeError, AttributeError) as error:
        # operands of the wrong kind, an empty stack, a memo never written, an opcode that has no place in a file
        raise Corrupt(f"its pickle is damaged at byte {walk.at}: {shown(str(error) or 'empty stack')}") from error
    except (ValueError, OverflowError, AssertionError) as error:
        # from genops alone: an unknown opcode, or operands that cannot be decoded
        if stream.tell() >= len(data):
            raise Torn(f"its pickle ends at byte {len(data)} without STOP") from error
        raise Corrupt(f"its pickle is damaged after byte {walk.at}: {shown(str(error))}") from error
    raise Opaque(f"its pickle has more than {MAX_OPCODES} opcodes")


_Act = Callable[[PickleWalk, Any], None]


def _new(make: Callable[[], PickleValue]) -> _Act:
    def act(walk: PickleWalk, _: object) -> None:
        walk.stack.append(make())

    return act


def _of_marked(make: Callable[[list[PickleValue]], PickleValue]) -> _Act:
    def act(walk: PickleWalk, _: object) -> None:
        items = walk.pop_mark()
        walk.stack.append(make(items))

    return act


def _tuple_of(count: int) -> _Act:
    def act(walk: PickleWalk, _: object) -> None:
        stack = walk.stack
        if len(stack) < count:
            raise IndexError("empty stack")
        items = tuple(stack[-count:])
        del stack[-count:]
        stack.append(items)

    return act


def _mark(walk: PickleWalk, _: object) -> None:
    walk.marks.append(walk.stack)
    walk.stack = []


def _pop(walk: PickleWalk, _: object) -> None:
    if walk.stack:
        walk.stack.pop()
    else:
        walk.pop_mark()


def _append(walk: PickleWalk, _: object) -> None:
    item = walk.stack.pop()
    walk.extend([item])


def _setitem(walk: PickleWalk, _: object) -> None:
    value = walk.stack.pop()
    key = walk.stack.pop()
    walk.set_pairs([key, value])


def _build(walk: PickleWalk, _: object) -> None:
    state = walk.stack.pop()
    target = walk.stack[-1]
    if isinstance(target, Instance):
        target.state.append(state)
    elif not isinstance(target, Mapping):  # a dict subclass with attributes (OrderedDict of a state_dict: ._metadata)
        raise TypeError("BUILD on a value that is not an object")


def _stack_global(walk: PickleWalk, _: object) -> None:
    name = walk.stack.pop()
    module = walk.stack.pop()
    if not isinstance(name, str) or not isinstance(module, str):
        raise TypeError("a name that is not text")
    walk.stack.append(walk.interpreter.name(Global(module, name)))


def _obj(items: list[PickleValue], walk: PickleWalk) -> None:
    walk.stack.append(walk.interpreter.call(items[0], tuple(items[1:])))


def _reduce(walk: PickleWalk, _: object) -> None:
    arguments = walk.pop_arguments()
    target = walk.stack.pop()
    walk.stack.append(walk.interpreter.call(target, arguments))


def _inst(walk: PickleWalk, operand: str) -> None:
    target = walk.interpreter.name(walk.written_name(operand))
    walk.stack, arguments = walk.marks.pop(), tuple(walk.stack)
    walk.stack.append(walk.interpreter.call(target, arguments))


def _newobj(walk: PickleWalk, _: object) -> None:
    arguments = walk.pop_arguments()
    target = walk.stack.pop()
    walk.stack.append(walk.interpreter.construct(target, arguments))


def _newobj_ex(walk: PickleWalk, _: object) -> None:
    keywords = walk.stack.pop()
    _newobj(walk, None)
    made = walk.stack[-1]
    if isinstance(made, Instance):
        made.state.append(keywords)


def _proto(_: PickleWalk, protocol: int) -> None:
    if protocol > _NEWEST_PROTOCOL:
        raise TypeError(f"protocol {protocol}")


def _frame(walk: PickleWalk, length: int) -> None:
    if walk.stream.tell() + length > walk.size:
        raise Torn(f"its pickle is cut: a frame of {length} bytes begins at byte {walk.at}")


_PUSHED = (
    "INT BININT BININT1 BININT2 LONG LONG1 LONG4 FLOAT BINFLOAT STRING BINSTRING SHORT_BINSTRING BINBYTES "
    "SHORT_BINBYTES BINBYTES8 UNICODE BINUNICODE SHORT_BINUNICODE BINUNICODE8"
)
"""Opcodes whose operand is the value."""

_ACTS: dict[str, _Act] = {
    **dict.fromkeys(_PUSHED.split(), lambda walk, operand: walk.stack.append(operand)),
    "BYTEARRAY8": lambda walk, operand: walk.stack.append(bytes(operand)),
    "NONE": _new(lambda: None),
    "NEWTRUE": _new(lambda: True),
    "NEWFALSE": _new(lambda: False),
    "EMPTY_TUPLE": _new(tuple),
    "EMPTY_LIST": _new(list),
    "EMPTY_DICT": _new(Mapping),
    "EMPTY_SET": _new(lambda: Bag([])),
    "LIST": _of_marked(list),
    "TUPLE": _of_marked(tuple),
    "DICT": _of_marked(lambda items: Mapping(paired(items))),
    "FROZENSET": _of_marked(lambda items: Bag(items, frozen=True)),
    "TUPLE1": _tuple_of(1),
    "TUPLE2": _tuple_of(2),
    "TUPLE3": _tuple_of(3),
    "MARK": _mark,
    "POP": _pop,
    "POP_MARK": lambda walk, _: walk.pop_mark().clear(),
    "DUP": lambda walk, _: walk.stack.append(walk.stack[-1]),
    **dict.fromkeys(("PUT", "BINPUT", "LONG_BINPUT"), lambda walk, index: walk.memo.__setitem__(index, walk.stack[-1])),
    "MEMOIZE": lambda walk, _: walk.memo.__setitem__(len(walk.memo), walk.stack[-1]),
    **dict.fromkeys(("GET", "BINGET", "LONG_BINGET"), lambda walk, index: walk.stack.append(walk.memo[index])),
    "APPEND": _append,
    "APPENDS": lambda walk, _: walk.extend(walk.pop_mark()),
    "ADDITEMS": lambda walk, _: walk.extend(walk.pop_mark()),
    "SETITEM": _setitem,
    "SETITEMS": lambda walk, _: walk.set_pairs(walk.pop_mark()),
    "BUILD": _build,
    "GLOBAL": lambda walk, operand: walk.stack.append(walk.interpreter.name(walk.written_name(operand))),
    "STACK_GLOBAL": _stack_global,
    **dict.fromkeys(
        ("EXT1", "EXT2", "EXT4"),
        lambda walk, code: walk.stack.append(walk.interpreter.name(Global("copyreg.extension", str(code)))),
    ),
    "REDUCE": _reduce,
    "INST": _inst,
    "OBJ": lambda walk, _: _obj(walk.pop_mark(), walk),
    "NEWOBJ": _newobj,
    "NEWOBJ_EX": _newobj_ex,
    "PERSID": lambda walk, operand: walk.stack.append(walk.interpreter.persistent(operand)),
    "BINPERSID": lambda walk, _: walk.stack.append(walk.interpreter.persistent(walk.stack.pop())),
    "STOP": lambda _walk, _: None,
    "PROTO": _proto,
    "FRAME": _frame,
}
"""By the name in ``pickletools``. Out-of-band buffers (NEXT_BUFFER, READONLY_BUFFER) have no place in a file."""
