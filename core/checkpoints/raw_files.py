"""What can be said of files of an unknown format: their first bytes, their digest, whether two are the same."""

from pathlib import Path

import msgspec

from ..model.checkpoints.checkpoint_results import FileChange
from .formats.byte_range import open_bytes
from .formats.damage import Damage
from .formats.foreign_formats import HEAD_BYTES, foreign_format
from .formats.reading_pace import Pace, ProgressCallback
from .layouts.members import Member, Members

DIGEST_BYTES = 256 << 20
"""Files up to this size in all are read for their digests: a second on a slow disk."""
SHOWN_BYTES = 8
_CHUNK_BYTES = 1 << 22


class RawFile(msgspec.Struct, frozen=True, kw_only=True):
    """``format``: by its first bytes. ``sha256`` None: it was too large to read, or cannot be read."""

    format: str
    sha256: str | None = None


def describe(members: Members) -> dict[str, RawFile]:
    """What is known of each member, by name."""
    small = members.size_bytes <= DIGEST_BYTES
    return {name: _described(member.path, digest=small) for name, member in members.files.items()}


def compare_files(a: Members, b: Members, progress: ProgressCallback | None = None) -> tuple[FileChange, ...]:
    """Each file of both, byte for byte. Two single files are compared whatever their names. Raises Damage."""
    one, other = a.files, b.files
    pairs: list[tuple[str, Member | None, Member | None]]
    if len(one) == len(other) == 1:
        ours, theirs = next(iter(one.values())), next(iter(other.values()))
        pairs = [(ours.name if ours.name == theirs.name else f"{ours.name}, {theirs.name}", ours, theirs)]
    else:
        pairs = [(name, one.get(name), other.get(name)) for name in sorted(one.keys() | other.keys())]
    pace = Pace(sum(m.size_bytes for _, first, second in pairs for m in (first, second) if m is not None), progress)
    found: list[FileChange] = []
    for name, first, second in pairs:
        same = False
        if first is not None and second is not None and first.size_bytes == second.size_bytes:
            same = _is_same(first.path, second.path, pace)
        found.append(
            FileChange(
                name=name,
                size_a=None if first is None else first.size_bytes,
                size_b=None if second is None else second.size_bytes,
                same=same,
            )
        )
    pace.finish()
    return tuple(found)


def _described(path: Path, *, digest: bool) -> RawFile:
    try:
        with open_bytes(path) as source:
            head = source.read(0, min(source.size, HEAD_BYTES))
            if not digest:
                return RawFile(format=_format(head, path.name))
            import hashlib  # a millisecond that a list of checkpoints does not need

            read = hashlib.sha256()
            for at in range(0, source.size, _CHUNK_BYTES):
                read.update(source.read(at, min(_CHUNK_BYTES, source.size - at)))
            return RawFile(format=_format(head, path.name), sha256=read.hexdigest())
    except (OSError, Damage) as error:
        return RawFile(format=f"cannot be read: {error}")


def _format(head: bytes, name: str) -> str:
    known = foreign_format(head, name)
    if known is not None:
        return known.words
    if not head:
        return "empty"
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.start < len(head) - 3:
            return f"binary, begins with {head[:SHOWN_BYTES].hex(' ')}"
    return f"binary, begins with {head[:SHOWN_BYTES].hex(' ')}" if b"\0" in head else "text"


def _is_same(a: Path, b: Path, pace: Pace) -> bool:
    with open_bytes(a) as one, open_bytes(b) as other:
        for at in range(0, one.size, _CHUNK_BYTES):
            size = min(_CHUNK_BYTES, one.size - at)
            if one.read(at, size) != other.read(at, size):
                return False
            pace.advance(2 * size)
    return True
