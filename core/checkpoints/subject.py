"""What a path names: a file, a set of shards or a directory, and how each is examined."""

import re
import stat
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ..model.checkpoint import KIND_OF, kind_of
from ..model.checkpoint_files import read_name, tensor_format
from ..model.checkpoint_suffixes import INDEX_SUFFIX
from .formats.byte_range import Corrupt, Damage, Opaque
from .formats.tensor_file import counts_of, examine_file
from .layouts.directory import examine_directory, examine_members, format_of, is_checkpoint_directory
from .layouts.frameworks import check_shards, shards_of
from .layouts.layout_reading import Finding
from .layouts.members import Member, Members, find_members

if TYPE_CHECKING:
    from .formats.value_scan import Scanner


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """One checkpoint to look at. ``examine``: if a scanner is given, every value is read."""

    path: Path
    members: Members
    mtime: float
    examine: "Callable[[Scanner | None], Finding]"

    @classmethod
    def unreadable(cls, path: Path, damage: Damage) -> "Subject":
        """A path that cannot be read."""
        members = Members(root=path, files=_files_at(path), folders=(), strays=())
        finding = Finding(kind="unknown", layout="unknown", counts=read_name(path.name), damages=(damage,))
        return cls(path=path, members=members, mtime=_mtime(path), examine=lambda _: finding)


def file_subject(path: Path, *, force: bool = False) -> Subject | None:
    """A single file, or None if neither name nor first bytes are those of a tensor file. ``force``: take any file."""
    status = path.stat()
    member = Member(name=path.name, path=path, size_bytes=status.st_size, mtime=status.st_mtime)
    chosen = format_of(member)
    if chosen is None and not force:
        return None
    members = Members(root=path.parent, files={path.name: member}, folders=(), strays=())

    def examine(scanner: "Scanner | None") -> Finding:
        found = examine_file(path, chosen or "torch", scanner=scanner)
        damages = () if found.damage is None else (found.damage.within(path.name),)
        contents = found.contents
        return Finding(
            kind="unknown" if chosen is None and contents is None else KIND_OF[chosen or "torch"],
            layout="file",
            counts=read_name(path.name) if contents is None else counts_of(contents, path.name),
            damages=damages,
            notes=(*(() if contents is None else contents.notes), *(() if found.note is None else (found.note,))),
            files={path.name: found},
        )

    return Subject(path=path, members=members, mtime=status.st_mtime, examine=examine)


def directory_subject(path: Path, *, force: bool = False, layout: str | None = None) -> Subject | None:
    """A directory, or None if it is not a checkpoint. ``force``: take any that holds weights at any depth."""
    if not force and not is_checkpoint_directory(path):
        return None
    try:
        members = find_members(path, layout)
    except FileNotFoundError:
        raise
    except OSError as error:
        return Subject.unreadable(path, Opaque(f"{path.name}: cannot be opened: {error.strerror}"))
    quick = examine_directory(members)
    if quick is None:
        return None

    def examine(scanner: "Scanner | None") -> Finding:
        found = quick if scanner is None else examine_directory(members, scanner=scanner)
        assert found is not None  # the same members were recognised before
        return found

    return Subject(path=path, members=members, mtime=_directory_mtime(path, members), examine=examine)


def index_subject(path: Path) -> Subject | None:
    """A set of shards that lies beside other files, named by its index."""
    if tensor_format(path.name.removesuffix(INDEX_SUFFIX)) is None:
        return None
    alone = _beside(path, [path.name])
    try:
        shards = shards_of(alone, path.name)
    except Damage as damage:
        finding = Finding(
            kind=kind_of(path.name),
            layout="shards",
            counts=read_name(path.name.removesuffix(INDEX_SUFFIX)),
            damages=(damage.within(path.name),),
        )
        return Subject(path=path, members=alone, mtime=_mtime(path), examine=lambda _: finding)
    return _shards_subject(path, _beside(path, [path.name, *sorted(shards)]))


def orphan_subject(path: Path, shard: "re.Match[str]") -> Subject | None:
    """Numbered shards without an index: the first names the set. None for the others, and if there is an index."""
    if path.with_name(f"{shard['stem']}{shard['suffix']}{INDEX_SUFFIX}").exists():
        return None
    siblings = sorted(
        name
        for name in (sibling.name for sibling in path.parent.iterdir())
        if re.fullmatch(rf"{re.escape(shard['stem'])}-\d{{5}}-of-{shard['total']}{re.escape(shard['suffix'])}", name)
    )
    if not siblings or siblings[0] != path.name:
        return None
    return _shards_subject(path, _beside(path, siblings))


def _beside(path: Path, names: list[str]) -> Members:
    """Existing files beside ``path``; links out of the directory count as missing."""
    files: dict[str, Member] = {}
    real = path.parent.resolve()
    for name in names:
        place = path.parent / name
        try:
            if not place.resolve(strict=True).is_relative_to(real):
                continue
            status = place.stat()
        except (OSError, RuntimeError):
            continue
        files[name] = Member(name=name, path=place, size_bytes=status.st_size, mtime=status.st_mtime)
    return Members(root=path.parent, files=files, folders=(), strays=())


def _shards_subject(path: Path, members: Members) -> Subject:
    name = path.name.removesuffix(INDEX_SUFFIX)
    kind = kind_of(name)

    def examine(scanner: "Scanner | None") -> Finding:
        findings = examine_members(members, scanner)
        damages = [found.damage.within(shard) for shard, found in findings.items() if found.damage is not None]
        damages.extend(check_shards(members, findings))
        first = next((found.contents for found in findings.values() if found.contents is not None), None)
        return Finding(
            kind=kind,
            layout="shards",
            counts=read_name(name) if first is None else counts_of(first, name),
            damages=tuple(damages) if findings else (*damages, Corrupt(f"{path.name}: names no files")),
            notes=tuple(f"{shard}: {found.note}" for shard, found in findings.items() if found.note is not None),
            files=findings,
        )

    mtime = max((member.mtime for member in members.files.values()), default=0.0)
    return Subject(path=path, members=members, mtime=mtime, examine=examine)


def _files_at(path: Path) -> dict[str, Member]:
    """The regular files of a path that is not read further; none if that cannot be told."""
    try:
        status = path.stat()
        if stat.S_ISREG(status.st_mode):
            alone = Member(name=path.name, path=path, size_bytes=status.st_size, mtime=status.st_mtime)
            return {path.name: alone}
        return find_members(path).files
    except OSError:
        return {}


def _mtime(path: Path) -> float:
    return path.stat().st_mtime


def _directory_mtime(path: Path, members: Members) -> float:
    """When a directory checkpoint was written, in seconds since the epoch.

    Its own time is that of the last entry that was added or renamed. If a file was written after the directory last
    changed (ctime), the newest file counts: trainers overwrite ``latest/`` in place.
    """
    status = path.stat()
    newest = max((member.mtime for member in members.files.values()), default=status.st_mtime)
    return newest if newest > status.st_ctime else status.st_mtime
