"""The verdict on one checkpoint (a file, a set of shards, a directory): quick from structure and sizes, or deep."""

import contextlib
import re
import stat
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ..file_walk import leaves
from ..model.checkpoint import KIND_OF, NAMES_KEPT, Checkpoint, Holds, kind_of
from ..model.checkpoint_files import SHARD, is_companion, is_part, is_temporary, read_name, says_state, tensor_format
from ..model.checkpoint_suffixes import INDEX_SUFFIX
from ..processes import status_of
from .formats.byte_range import (
    Corrupt,
    Damage,
    Growing,
    NonFinite,
    Opaque,
    Pace,
    ProgressCallback,
    idle_io_priority,
    worst,
)
from .formats.foreign_formats import foreign_damage
from .formats.tensor_file import STATE_FILES, counts_of, examine_file
from .layouts.directory import bytes_to_scan, examine_directory, examine_members, format_of, is_checkpoint_directory
from .layouts.frameworks import check_shards, shards_of
from .layouts.layout_reading import Finding, is_optimizer_alone, optimizer_in
from .layouts.sets import RANK_FOLDER, Member, Members, find_members, saved_with, unfinished_beside
from .unknown_state import UNKNOWN, is_named_state, what_state

if TYPE_CHECKING:
    from .formats.nonfinite import Scanner

_NUMBER = re.compile(r"\d+")


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
        return cls(path=path, members=members, mtime=path.stat().st_mtime, examine=lambda _: finding)


def file_subject(path: Path, *, force: bool = False) -> Subject | None:
    """A single file, or None if neither name nor first bytes are those of a tensor file. ``force``: take any file."""
    member = Member.at(path)
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

    return Subject(path=path, members=members, mtime=member.mtime, examine=examine)


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
    try:
        names = sorted(shards_of(_beside(path, [path.name]), path.name))
    except Damage:
        names = []  # what is wrong with the index is found with its set
    return _shards_subject(path, _beside(path, [path.name, *names]))


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
        with contextlib.suppress(OSError):
            if not leaves(path.parent / name, real):
                files[name] = Member.at(path.parent / name)
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
        return {path.name: Member.at(path)} if stat.S_ISREG(path.stat().st_mode) else find_members(path).files
    except OSError:
        return {}


def _directory_mtime(path: Path, members: Members) -> float:
    """When a directory checkpoint was written, in seconds since the epoch.

    Its own time is that of the last entry that was added or renamed. If a file was written after the directory last
    changed (ctime), the newest file counts: trainers overwrite ``latest/`` in place.
    """
    status = path.stat()
    newest = max((member.mtime for member in members.files.values()), default=status.st_mtime)
    return newest if newest > status.st_ctime else status.st_mtime


def inspect(path: Path, *, layout: str | None = None) -> Checkpoint | None:
    """Quick verdict: structure and sizes, no tensor values.

    None: it does not exist, or it is not a checkpoint (a log, an optimizer alone, one shard of a set that has an
    index, an output directory, a file without tensors). A temporary name (``*.tmp``, ``tmp-checkpoint-500``) gives the
    verdict ``writing``. No file makes it raise, a mount may. ``layout``: the one that its trainer follows, if its
    preset says so (``layout``).
    """
    try:
        subject = subject_of(path, layout)
        finding = None if subject is None else subject.examine(None)
        return None if subject is None or finding is None or finding.is_bare else conclude(subject, finding)
    except FileNotFoundError:
        return None


def inspect_any(
    path: Path, *, layout: str | None = None, rewritten: bool = False, named: bool = False
) -> Checkpoint | None:
    """As ``inspect``; what is no checkpoint of a known make, but may be state of a training, is ``opaque``.

    ``rewritten``: it was written again as a whole. ``named``: the preset's ``checkpoint_globs`` name it. Raises OSError
    other than FileNotFoundError.
    """
    try:
        subject = subject_of(path, layout)
        finding = None if subject is None else subject.examine(None)
        if subject is not None and finding is not None and not finding.is_bare:
            return conclude(subject, finding)
        if finding is not None and finding.is_other:
            return None
        part = (SHARD.match(path.name) or RANK_FOLDER.match(path.name)) is not None and finding is None
        unknown = None if part else unknown_subject(path, rewritten=rewritten, named=named)
        return None if unknown is None else conclude(unknown, unknown.examine(None))
    except FileNotFoundError:
        return None


def verify(
    path: Path,
    *,
    deep: bool,
    progress: ProgressCallback | None = None,
    rate_limit_bytes_per_s: float | None = None,
    layout: str | None = None,
) -> Checkpoint:
    """Verdict on one checkpoint, asked for by name.

    Deep: checksums of all members and every value of every tensor, optimizer state included, in buffers of 1 MB, at
    idle disk priority and at most ``rate_limit_bytes_per_s``. ``progress(done, total)`` in bytes; what it raises ends
    the verification and reaches the caller. Raises FileNotFoundError. A file that is not a checkpoint gets a
    verdict, too.
    """
    subject = subject_of(path, layout) or _anything(path)
    if not deep:
        return conclude(subject, subject.examine(None))
    from .formats.nonfinite import Scanner  # numpy, only where values are read

    pace = Pace(bytes_to_scan(subject.members), progress, rate_limit_bytes_per_s)
    before = _signature(subject.members)
    with idle_io_priority():
        finding = subject.examine(Scanner(pace))
    changed = next((name for name, seen in _signature(subject.members).items() if seen != before[name]), None)
    if changed is not None:
        damages = (*finding.damages, Growing(f"{changed}: changed while it was read"))
        finding = msgspec.structs.replace(finding, damages=damages)
    pace.finish()
    return conclude(subject, finding)


def subject_of(path: Path, layout: str | None = None) -> Subject | None:
    """The checkpoint that the path names, or None if it names none. Raises FileNotFoundError."""
    status = path.stat()
    if stat.S_ISDIR(status.st_mode):
        return directory_subject(path, layout=layout)
    if not stat.S_ISREG(status.st_mode):
        return None
    if path.name.endswith(INDEX_SUFFIX):
        return index_subject(path)
    if is_part(path.name):
        return None
    shard = SHARD.match(path.name)
    if shard and int(shard["total"]) > 1:
        return orphan_subject(path, shard)
    return file_subject(path)


def parts_of(path: Path) -> dict[str, int]:
    """Names and bytes of the files beside a checkpoint that are of no use without it: optimizer, scheduler, RNG state.

    They were written at its save, are whole, and are parts by what they hold, or by names that no checkpoint has.
    """
    found: dict[str, int] = {}
    for other in saved_with(path):
        subject = file_subject(other) if other.is_file() and not other.is_symlink() else None
        if subject is not None and not (finding := subject.examine(None)).damages:
            named = is_part(other.name) and is_companion(other.name)
            held = finding.held.values()  # weights in safetensors may be called so by a person
            if any(is_optimizer_alone(each) or (named and each.format != "safetensors") for each in held):
                found[other.name] = subject.members.size_bytes
    return found


def subject_of_any(path: Path) -> Subject | None:
    """As ``subject_of``; also what may be state of an unknown make. Raises FileNotFoundError."""
    subject = subject_of(path)
    if subject is not None:
        return subject
    if path.is_dir() and not is_named_state(path):
        return None  # a folder of which only some content is unknown may be an output folder
    return unknown_subject(path, named=says_state(path.name))


def unknown_subject(path: Path, *, rewritten: bool = False, named: bool = False) -> Subject | None:
    """State of an unknown make, or None: ``opaque``, or what a format that is recognised says of its own length.

    With a scanner, the checksums of such a format are tested, too. ``rewritten``, ``named``: as for ``what_state``.
    Raises OSError.
    """
    what = what_state(path, rewritten=rewritten, named=named)
    if what is None:
        return None
    files = _files_at(path)

    def examine(scanner: "Scanner | None") -> Finding:
        found: Damage = Opaque(f"{UNKNOWN} ({what}): only its trainer can tell whether it is whole")
        if path.is_file() and (damage := foreign_damage(path, scanner)) is not None:
            reason = f"{path.name}: {damage.reason} ({what})"
            found = type(damage)(reason, understood=damage.understood, unfinished=damage.unfinished)
        return Finding(kind="unknown", layout="unknown", counts=read_name(path.name), damages=(found,))

    return Subject(
        path=path,
        members=Members(root=path, files=files, folders=(), strays=()),
        mtime=max(path.stat().st_mtime, *(member.mtime for member in files.values()), 0.0),
        examine=examine,
    )


def conclude(subject: Subject, finding: Finding) -> Checkpoint:
    damages = [*finding.damages]
    if not any(damage.verdict == "torn" for damage in damages):
        torn = unfinished_beside(subject.path, _is_damaged)
        damages += [torn] if torn is not None else []
    if is_temporary(subject.path.name):
        damages.append(Growing(f"{subject.path.name}: has a name that is used while a file is written"))
    deciding = worst(damages)
    values = [each for each in damages if isinstance(each, NonFinite)]
    notes = "; ".join(finding.notes) or None
    return Checkpoint(
        path=str(subject.path),
        name=subject.path.name,
        kind=finding.kind,
        step=finding.counts.step,
        epoch=finding.counts.epoch,
        size_bytes=subject.members.size_bytes,
        mtime=subject.mtime,
        verdict="complete" if deciding is None else deciding.verdict,
        reason=notes if deciding is None else deciding.reason,
        opaque=finding.opaque,
        objects=finding.objects,
        holds=None if deciding is not None and deciding.verdict == "opaque" else holding(subject, finding),
        nonfinite=tuple(_stable(name, subject) for each in values for name in each.names)[:NAMES_KEPT],
        nan=tuple(_stable(name, subject) for each in values for name in each.nan)[:NAMES_KEPT],
        understood=not damages or any(damage.understood for damage in damages),
        unfinished=any(damage.unfinished for damage in damages),
    )


def _is_damaged(path: Path) -> bool:
    """Whether a file is cut off or contradicts itself."""
    try:
        subject = subject_of(path)
        deciding = None if subject is None else worst([*subject.examine(None).damages])
    except OSError:
        return True
    return deciding is not None and deciding.verdict in {"torn", "corrupt"}


def _stable(name: str, subject: Subject) -> str:
    """The name of a tensor as it is in the run's other checkpoints, too: without the step in the names of files."""
    member, _, tensor = name.removeprefix(f"{subject.path.name}: ").rpartition(": ")
    return f"{_NUMBER.sub('#', member)}: {tensor}" if member else tensor


def holding(subject: Subject, finding: Finding) -> Holds | None:
    """What the checkpoint holds; None if that is unknown: DCP's parts, and files whose objects cannot be listed."""
    if optimizer_in(subject.members, finding.files):
        return "state"
    if finding.layout in {"file", "shards"}:
        return "weights" if all(f.contents is not None for f in finding.files.values()) and finding.files else None
    if any(name in subject.members.files for name in STATE_FILES):
        return "state"
    return None if finding.kind in {"dcp", "unknown"} else "weights"


def _anything(path: Path) -> Subject:
    """A subject for a path that was asked for but is not a checkpoint by its name."""
    found = unknown_subject(path)
    if found is None and stat.S_ISREG(mode := path.stat().st_mode):
        found = file_subject(path, force=True)
    elif found is None and stat.S_ISDIR(mode):
        found = directory_subject(path, force=True)
    return found or Subject.unreadable(path, Corrupt(f"{path.name}: is not a checkpoint of a known layout"))


def _signature(members: Members) -> dict[str, tuple[int, int, int] | None]:
    """Size, time and identity of each file, to notice a change."""
    found = {name: status_of(member.path) for name, member in members.files.items()}
    return {name: s and (s.st_size, s.st_mtime_ns, s.st_ino) for name, s in found.items()}
