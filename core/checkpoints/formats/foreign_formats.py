"""Formats that are recognised by their first bytes and not read: other frameworks' states, archives, databases."""

import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from .byte_range import ByteRange, Corrupt, Damage, Opaque, Torn, open_bytes
from .tensors import shown
from .zip_archive import LOCAL_SIGNATURE, read_zip

if TYPE_CHECKING:
    from .nonfinite import Scanner


TORCH_LEGACY = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
"""How files of ``torch.save`` began before they were zip files: the number 0x1950a86a20f9469cfc6c, pickled."""
TAR_MARK = b"ustar"
TAR_MARK_AT = 257
_ZIP_NAME_AT = 30


class ForeignFormat(NamedTuple):
    """``words``: its name. ``of_models``: it holds a model, whoever wrote it. ``may_be_state``: of a training."""

    words: str
    of_models: bool = False
    may_be_state: bool = True


_STARTS: tuple[tuple[bytes, ForeignFormat], ...] = (
    (b"GGUF", ForeignFormat("GGUF", of_models=True)),
    (b"ggjt", ForeignFormat("GGML", of_models=True)),
    (b"\x89HDF\r\n\x1a\n", ForeignFormat("HDF5", of_models=True)),
    (b"\x93NUMPY", ForeignFormat("a numpy array")),
    (b"SQLite format 3\0", ForeignFormat("an SQLite database")),
    (b"\x1f\x8b", ForeignFormat("gzip")),
    (b"\x28\xb5\x2f\xfd", ForeignFormat("Zstandard")),
    (b"\xfd7zXZ\0", ForeignFormat("xz")),
    (b"BZh", ForeignFormat("bzip2")),
    (b"\x04\x22\x4d\x18", ForeignFormat("LZ4")),
    (b"7z\xbc\xaf\x27\x1c", ForeignFormat("7z")),
    # Pictures, audio, compiled code and data sets under any name.
    (b"\x89PNG\r\n\x1a\n", ForeignFormat("PNG", may_be_state=False)),
    (b"\xff\xd8\xff", ForeignFormat("JPEG", may_be_state=False)),
    (b"GIF8", ForeignFormat("GIF", may_be_state=False)),
    (b"RIFF", ForeignFormat("RIFF", may_be_state=False)),
    (b"%PDF", ForeignFormat("PDF", may_be_state=False)),
    (b"\x7fELF", ForeignFormat("ELF", may_be_state=False)),
    (b"PAR1", ForeignFormat("Parquet", may_be_state=False)),
    (b"ARROW1", ForeignFormat("Arrow", may_be_state=False)),
)


def foreign_format(head: bytes, name: str) -> ForeignFormat | None:
    """The format that a file's first HEAD_BYTES show, or None. ``name``: its name, for suffixes that are a format."""
    for start, found in _STARTS:
        if head.startswith(start):
            return found
    if head[TAR_MARK_AT:].startswith(TAR_MARK):
        return ForeignFormat("tar")
    if is_torch_zip(head):
        return ForeignFormat("torch.save, without a tensor")
    if head.startswith(LOCAL_SIGNATURE):
        return ForeignFormat("Keras", of_models=True) if name.lower().endswith(".keras") else ForeignFormat("zip")
    if head[4:8] == b"TFL3":
        return ForeignFormat("TensorFlow Lite", of_models=True)
    if head[:1] == b"\x80" and head[1:2] in {b"\x02", b"\x03", b"\x04", b"\x05"}:
        return ForeignFormat("pickle")
    return None


def is_torch_zip(head: bytes) -> bool:
    """Whether a zip file begins as ``torch.save`` writes it: with the member ``NAME/data.pkl``."""
    if not head.startswith(LOCAL_SIGNATURE):
        return False
    length = int.from_bytes(head[26:28], "little")
    return head[_ZIP_NAME_AT : _ZIP_NAME_AT + length].endswith(b"/data.pkl")


def is_safetensors(head: bytes) -> bool:
    """Whether it begins with the length of a JSON header and a brace, as safetensors does."""
    return len(head) > 9 and head[8:9] == b"{" and 2 <= int.from_bytes(head[:8], "little") <= 100 << 20


# Whether a file whose format is recognised but not read is whole, as far as the format itself tells.
#
# Zip archives (Keras, ``np.savez``, stable-baselines3), HDF5 and numpy arrays say how long they are; zip archives have
# checksums, too. Nothing is unpickled or extracted. Sources: HDF5 File Format Specification 3.0, section II.A;
# ``numpy/lib/format.py``.

_HDF5 = b"\x89HDF\r\n\x1a\n"
_HDF5_FIRST_ADDRESS = {0: 24, 1: 28, 2: 12, 3: 12}
"""Byte of the superblock where its addresses begin, by its version: base, one other, end of file."""
_HDF5_WIDTH_AT = {0: 13, 1: 13, 2: 9, 3: 9}
_SUPERBLOCK_BYTES = 96
_NUMPY = b"\x93NUMPY"
_NUMPY_TYPE = re.compile(r"[<>|=][?bBiufcmMSaVU](\d+)(\[\w+\])?")
_NUMPY_HEADER_AT_MOST = 1 << 20


def foreign_damage(path: Path, scanner: "Scanner | None" = None) -> Damage | None:
    """What the format itself says is wrong; None: nothing, or it cannot be told. With a scanner, checksums, too.

    Raises FileNotFoundError.
    """
    try:
        with open_bytes(path) as source:
            head = source.read(0, min(source.size, _SUPERBLOCK_BYTES))
            if head.startswith(LOCAL_SIGNATURE):
                for member in read_zip(source):
                    if scanner is not None and member.crc is not None and scanner.scan(source, member) != member.crc:
                        raise Corrupt(f"member {shown(member.label)} at byte {member.start} has a wrong checksum")
            elif head.startswith(_HDF5):
                _check_length(source, _hdf5_end(head))
            elif head.startswith(_NUMPY):
                _check_length(source, _numpy_end(source))
    except Opaque:
        return None
    except Damage as damage:
        return damage
    return None


def _check_length(source: ByteRange, end: int | None) -> None:
    if end is not None and source.size < end:
        raise Torn(f"is cut off after {source.size} of its {end} bytes")


def _hdf5_end(head: bytes) -> int | None:
    """The length that the superblock gives, in bytes."""
    version = head[8] if len(head) > 8 else -1
    if version not in _HDF5_FIRST_ADDRESS:
        return None
    width = head[_HDF5_WIDTH_AT[version]] if len(head) > _HDF5_WIDTH_AT[version] else 0
    at = _HDF5_FIRST_ADDRESS[version] + 2 * width
    if width not in {4, 8} or len(head) < at + width:
        return None
    end = int.from_bytes(head[at : at + width], "little")
    return None if end == (1 << 8 * width) - 1 else end


def _numpy_end(source: ByteRange) -> int | None:
    """The length that the header gives, in bytes; None for arrays of objects, whose length it does not give."""
    wide = source.read(6, 1)[0] > 1
    at = 12 if wide else 10
    length = int.from_bytes(source.read(8, at - 8), "little")
    if length > _NUMPY_HEADER_AT_MOST:
        return None
    try:
        from ast import literal_eval

        header = literal_eval(source.read(at, length).decode("utf-8"))
        shape, kind = header["shape"], _NUMPY_TYPE.fullmatch(header["descr"])
        if kind is None:
            return None
        width = int(kind[1]) * (4 if header["descr"][1] == "U" else 1)
        return at + length + width * int(math.prod(shape))
    except (ValueError, SyntaxError, TypeError, KeyError, MemoryError, RecursionError):
        return None
