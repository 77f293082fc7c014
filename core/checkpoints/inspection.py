"""The verdict on one checkpoint: quick from structure and sizes, deep from every byte."""

import re
import stat
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ..model.checkpoint import NAMES_KEPT, Checkpoint, Holds
from ..model.checkpoint_files import SHARD, is_part, is_temporary
from ..model.checkpoint_suffixes import INDEX_SUFFIX
from ..model.other_files import says_state
from .formats.byte_range import Corrupt, Growing, NonFinite, Opaque, Pace, ProgressCallback, idle_io_priority, worst
from .formats.foreign_formats import foreign_damage
from .formats.tensor_file import STATE_FILES
from .layouts.directory import bytes_to_scan
from .layouts.layout_reading import Finding, optimizer_in
from .layouts.members import Members, find_members
from .layouts.sets import RANK_FOLDER, unfinished_beside
from .subject import Subject, directory_subject, file_subject, index_subject, orphan_subject
from .unknown_state import UNKNOWN, is_named_state, unknown_state

if TYPE_CHECKING:
    from .formats.value_scan import Scanner

_NUMBER = re.compile(r"\d+")


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
        if finding is not None and finding.is_compiled:
            return None
        part = (SHARD.match(path.name) or RANK_FOLDER.match(path.name)) is not None and finding is None
        found = None if part else unknown_state(path, rewritten=rewritten, named=named)
        torn = None if found is None else unfinished_beside(path, _is_damaged)
        if found is None or torn is None:
            return found
        return msgspec.structs.replace(
            found, verdict=torn.verdict, reason=torn.reason, understood=torn.understood, unfinished=True
        )
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
    from .formats.value_scan import Scanner  # numpy, only where values are read

    pace = Pace(bytes_to_scan(subject.members), progress, rate_limit_bytes_per_s)
    before = _signature(subject.members)
    with idle_io_priority(), closing(Scanner(pace)) as scanner:
        finding = subject.examine(scanner)
    changed = next((name for name, seen in _signature(subject.members).items() if seen != before[name]), None)
    if changed is not None:
        finding = finding.with_damage(Growing(f"{changed}: changed while it was read"))
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


def subject_of_any(path: Path) -> Subject | None:
    """As ``subject_of``; also what may be state of an unknown make. Raises FileNotFoundError."""
    subject = subject_of(path)
    if subject is not None:
        return subject
    unknown = unknown_state(path, named=says_state(path.name))
    if unknown is None or (path.is_dir() and not is_named_state(unknown)):
        return None  # a folder of which only some content is unknown may be an output folder
    found = _foreign(path, unknown)
    return msgspec.structs.replace(found, members=find_members(path)) if path.is_dir() else found


def conclude(subject: Subject, finding: Finding) -> Checkpoint:
    """The verdict from a finding."""
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


def has_optimizer(subject: Subject, finding: Finding) -> bool:
    """A member of its own, or inside a file."""
    return optimizer_in(subject.members, finding.files)


def holding(subject: Subject, finding: Finding) -> Holds | None:
    """What the checkpoint holds; None if that is unknown: DCP's parts, and files whose objects cannot be listed."""
    if has_optimizer(subject, finding):
        return "state"
    if finding.layout in {"file", "shards"}:
        return "weights" if all(f.contents is not None for f in finding.files.values()) and finding.files else None
    if any(name in subject.members.files for name in STATE_FILES):
        return "state"
    return None if finding.kind in {"dcp", "unknown"} else "weights"


def _anything(path: Path) -> Subject:
    """A subject for a path that was asked for but is not a checkpoint by its name."""
    unknown = unknown_state(path)
    if unknown is not None:
        return _foreign(path, unknown)
    status = path.stat()
    forced = None
    if stat.S_ISREG(status.st_mode):
        forced = file_subject(path, force=True)
    elif stat.S_ISDIR(status.st_mode):
        forced = directory_subject(path, force=True)
    if forced is not None:
        return forced
    return Subject.unreadable(path, Corrupt(f"{path.name}: is not a checkpoint of a known layout"))


def _foreign(path: Path, unknown: Checkpoint) -> Subject:
    """State of an unknown make; with a scanner, the checksums of a format that has some are tested."""
    subject = Subject.unreadable(path, Opaque(unknown.reason or UNKNOWN))
    if not path.is_file():
        return subject

    def examine(scanner: "Scanner | None") -> Finding:
        damage = foreign_damage(path, scanner)
        found = subject.examine(None)
        return found if damage is None else found.with_damage(damage.within(path.name))

    return msgspec.structs.replace(subject, examine=examine)


def _signature(members: Members) -> dict[str, tuple[int, int, int] | None]:
    """Size, time and identity of each file, to notice a change."""
    seen: dict[str, tuple[int, int, int] | None] = {}
    for name, member in members.files.items():
        try:
            status = member.path.stat()
            seen[name] = (status.st_size, status.st_mtime_ns, status.st_ino)
        except OSError:
            seen[name] = None
    return seen
