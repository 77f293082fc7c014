"""Which of torch's formats a file is in, by its first bytes."""

from .byte_range import ByteRange
from .contents import FileContents
from .damage import Corrupt, Sealed, Torn
from .legacy_torch import MAGIC, read_legacy, read_plain_pickle
from .torch_archive import read_torch_archive
from .zip_archive import LOCAL_SIGNATURE

_TAR_MARK = b"ustar"
_TAR_MARK_AT = 257
_TEXT_PICKLE_STARTS = b"(c]}lNISFVGUX"
"""First bytes of pickles of protocol 0 and 1, which carry no mark."""


def read_torch_file(source: ByteRange) -> FileContents:
    """List a file of ``torch.save`` (zip or legacy) or a plain pickle. Raises Damage."""
    if source.size == 0:
        raise Torn("is empty")
    head = source.read(0, min(source.size, _TAR_MARK_AT + len(_TAR_MARK)))
    if head.startswith(LOCAL_SIGNATURE):
        return read_torch_archive(source)
    if head.startswith(MAGIC):
        return read_legacy(source)
    if MAGIC.startswith(head) or LOCAL_SIGNATURE.startswith(head):
        raise Torn(f"is cut off after {source.size} bytes")
    if head.endswith(_TAR_MARK):
        raise Sealed("is in the tar form of torch 0.1, which is not read")
    if head[0] == 0x80:
        return read_plain_pickle(source)
    if head[:1] in {bytes([start]) for start in _TEXT_PICKLE_STARTS}:
        try:
            return read_plain_pickle(source)
        except (Torn, Corrupt) as damage:
            raise Corrupt(f"is in no format that torch writes ({damage.reason})") from damage
    what = "begins with zeros" if not head.strip(b"\0") else "is in no format that torch writes"
    raise Corrupt(f"{what} (byte 0: {head[:8].hex(' ')})")


def looks_like_torch(head: bytes) -> bool:
    """Whether the first bytes of a file of unclear name (``.bin``, ``.pkl``) are torch's."""
    return head.startswith((LOCAL_SIGNATURE, MAGIC))
