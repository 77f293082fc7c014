"""Formats that are recognised by their first bytes and not read: other frameworks' states, archives, databases."""

from typing import NamedTuple

from .zip_archive import LOCAL_SIGNATURE

HEAD_BYTES = 4096
TORCH_LEGACY = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
"""How files of ``torch.save`` began before they were zip files: the number 0x1950a86a20f9469cfc6c, pickled."""
_TAR_MARK = b"ustar"
_TAR_MARK_AT = 257
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
    if head[_TAR_MARK_AT:].startswith(_TAR_MARK):
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
