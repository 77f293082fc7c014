"""Enums as Python 3.11.0 to 3.11.3 store them: ``getattr(Class, "MEMBER")``. A member is data; every other use is not."""

import pytest

from trainwatch.core.checkpoints.formats.pickle_reader import read_pickle
from trainwatch.core.checkpoints.formats.tensors import Instance
from trainwatch.core.checkpoints.formats.torch_objects import TorchInterpreter


def getattr_of(module: str, name: str, member: bytes, behind: bytes = b"") -> bytes:
    """Opcodes of protocol 2: getattr(module.name, member), then what is ``behind``."""
    length = len(member).to_bytes(4, "little")
    holder = f"c{module}\n{name}\n".encode()
    return b"\x80\x02cbuiltins\ngetattr\n(" + holder + b"X" + length + member + b"tR" + behind + b"."


FORMAT = ("torch.distributed.checkpoint.metadata", "_MEM_FORMAT_ENCODING")


def test_a_member_of_a_known_class_is_a_value() -> None:
    interpreter = TorchInterpreter()
    value, _ = read_pickle(getattr_of(*FORMAT, b"TORCH_CONTIGUOUS_FORMAT"), interpreter)
    assert isinstance(value, Instance)
    assert (interpreter.refused, interpreter.hostile, interpreter.opaque) == ({}, {}, {})


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(getattr_of("some_module", "Thing", b"MEMBER"), id="a class that nobody knows"),
        pytest.param(getattr_of("os", "path", b"join"), id="a module"),
        pytest.param(getattr_of(*FORMAT, b"__subclasses__"), id="an inner name"),
        pytest.param(getattr_of(*FORMAT, b"a.b"), id="a path of names"),
        pytest.param(getattr_of(*FORMAT, b"MEMBER", behind=b")R"), id="a member that is called"),
        pytest.param(b"\x80\x02cbuiltins\ngetattr\n)R.", id="nothing"),
        pytest.param(b"\x80\x02cbuiltins\ngetattr\n.", id="its mention"),
        pytest.param(b"\x80\x02cos\nsystem\n0" + getattr_of(*FORMAT, b"MEMBER")[2:], id="something else before"),
        pytest.param(
            getattr_of("os", "path", b"join")[:-1] + b"0" + getattr_of(*FORMAT, b"MEMBER")[2:], id="misuse, then use"
        ),
        pytest.param(b"\x80\x02cbuiltins\ngetattr\ncos\nsystem\n\x85R.", id="too little"),
    ],
)
def test_any_other_getattr_is_refused(data: bytes) -> None:
    interpreter = TorchInterpreter()
    read_pickle(data, interpreter)
    assert interpreter.refused or interpreter.hostile
