"""Element types of tensors: how wide they are and how NaN and Inf look in them."""

from typing import Literal

import msgspec

FiniteCheck = Literal["none", "float32", "float64", "float16", "bfloat16", "e4m3", "e5m2", "fnuz", "e8m0"]
"""How non-finite values are recognised; ``none``: every bit pattern is a number."""


class Element(msgspec.Struct, frozen=True):
    """One element type. ``bits`` per element (complex numbers count both halves); ``check`` for each part."""

    name: str
    bits: int
    check: FiniteCheck = "none"

    def size_bytes(self, count: int) -> int:
        """Bytes that ``count`` elements take, packed."""
        return (count * self.bits + 7) // 8


_ELEMENTS = (
    Element("bool", 8),
    Element("uint8", 8),
    Element("int8", 8),
    Element("uint16", 16),
    Element("int16", 16),
    Element("uint32", 32),
    Element("int32", 32),
    Element("uint64", 64),
    Element("int64", 64),
    Element("float4_e2m1fn_x2", 8),
    Element("float4", 4),
    Element("float6_e2m3", 6),
    Element("float6_e3m2", 6),
    Element("float8_e4m3fn", 8, "e4m3"),
    Element("float8_e5m2", 8, "e5m2"),
    Element("float8_e4m3fnuz", 8, "fnuz"),
    Element("float8_e5m2fnuz", 8, "fnuz"),
    Element("float8_e8m0fnu", 8, "e8m0"),
    Element("float16", 16, "float16"),
    Element("bfloat16", 16, "bfloat16"),
    Element("float32", 32, "float32"),
    Element("float64", 64, "float64"),
    Element("complex32", 32, "float16"),
    Element("complex64", 64, "float32"),
    Element("complex128", 128, "float64"),
    Element("qint8", 8),
    Element("quint8", 8),
    Element("qint32", 32),
    Element("quint4x2", 8),
    Element("quint2x4", 8),
)

TORCH_ELEMENTS: dict[str, Element] = {element.name: element for element in _ELEMENTS} | {
    # spellings that also occur as torch.NAME
    "float": Element("float32", 32, "float32"),
    "double": Element("float64", 64, "float64"),
    "half": Element("float16", 16, "float16"),
    "long": Element("int64", 64),
    "int": Element("int32", 32),
    "short": Element("int16", 16),
    "cfloat": Element("complex64", 64, "float32"),
    "cdouble": Element("complex128", 128, "float64"),
    "chalf": Element("complex32", 32, "float16"),
}
"""By the name of torch's dtype."""

_STORAGES = """
Bool bool, Byte uint8, Char int8, Short int16, Int int32, Long int64, Half float16, BFloat16 bfloat16, Float float32,
Double float64, ComplexFloat complex64, ComplexDouble complex128, QInt8 qint8, QUInt8 quint8, QInt32 qint32, QUInt4x2
quint4x2, QUInt2x4 quint2x4
"""
STORAGE_ELEMENTS: dict[str, Element] = {
    f"{storage}Storage": TORCH_ELEMENTS[name] for storage, name in (row.split() for row in _STORAGES.split(","))
}
"""By the name of torch's typed storage class, as it stands in a pickle."""

_CODES = """
BOOL bool, F4 float4, F6_E2M3 float6_e2m3, F6_E3M2 float6_e3m2, U8 uint8, I8 int8, F8_E5M2 float8_e5m2, F8_E4M3
float8_e4m3fn, F8_E8M0 float8_e8m0fnu, F8_E4M3FNUZ float8_e4m3fnuz, F8_E5M2FNUZ float8_e5m2fnuz, I16 int16, U16
uint16, F16 float16, BF16 bfloat16, I32 int32, U32 uint32, F32 float32, C64 complex64, F64 float64, I64 int64, U64
uint64
"""
SAFETENSORS_ELEMENTS: dict[str, Element] = {
    code: TORCH_ELEMENTS[name] for code, name in (row.split() for row in _CODES.split(","))
}
"""By the dtype code of a safetensors header."""
