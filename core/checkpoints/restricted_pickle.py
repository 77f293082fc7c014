"""A reader of pickles that executes nothing.

It walks the opcodes itself (no ``pickle.Unpickler``: that one imports, keeps a process-wide extension cache, calls
``__setstate__`` and grows its memo to whatever index the file names) and builds inert values. Whatever would import,
call or construct goes to an ``Interpreter``, which answers with a description. Size, number of opcodes and memo are
bounded by the bytes of the pickle; there is no recursion.
"""

import struct

from .damage import Corrupt, Sealed, Torn
from .pickle_opcodes import OPCODES
from .pickle_values import PickleValue, shown
from .pickle_walk import Interpreter, PickleWalk

MAX_PICKLE_BYTES = 256 << 20
"""More than any framework's object tree beside its tensors; beyond it the file is not listed."""
MAX_OPCODES = 20_000_000
"""Bounds memory and time: about a gigabyte and ten seconds at the very worst."""
_STOP = ord(".")


def read_pickle(data: bytes, interpreter: Interpreter, start: int = 0) -> tuple[PickleValue, int]:
    """Walk one pickle in ``data`` from ``start``; returns its value and the offset after its STOP.

    Raises Torn (ends before STOP), Corrupt (no such opcode, wrong operands), Sealed (beyond the limits).
    """
    walk = PickleWalk(data, interpreter, start)
    size = len(data)
    opcode_at = start
    try:
        for _ in range(MAX_OPCODES):
            opcode_at = walk.at
            if opcode_at >= size:
                raise Torn(f"its pickle ends at byte {opcode_at} without STOP")
            opcode = data[opcode_at]
            walk.at = opcode_at + 1
            if opcode == _STOP:
                value = walk.stack.pop()
                return value, walk.at
            act = OPCODES[opcode]
            if act is None:
                raise Corrupt(f"its pickle has the unknown opcode {opcode:#04x} at byte {opcode_at}")
            act(walk)
    except (IndexError, KeyError, ValueError, TypeError, OverflowError, struct.error, AttributeError) as error:
        # operands of the wrong kind, an empty stack, a memo never written, bytes that are no UTF-8
        raise Corrupt(f"its pickle is damaged at byte {opcode_at}: {shown(str(error) or 'empty stack')}") from error
    raise Sealed(f"its pickle has more than {MAX_OPCODES} opcodes")
