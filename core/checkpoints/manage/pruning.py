"""Which checkpoints may be deleted, and their deletion. Nothing is deleted but by explicit order."""

import os
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from ...model.checkpoints.checkpoint import Checkpoint
from ...model.checkpoints.checkpoint_names import series_of
from ...model.checkpoints.checkpoint_suffixes import INDEX_SUFFIX
from ..formats.reading_pace import ProgressCallback
from ..inspection import inspect, subject_of, verify
from ..listing import list_checkpoints
from .backup import sync_directory

KeepReason = Literal["newest", "resume point", "neighbour of a bad one", "not complete", "a link", "deep check failed"]


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """A checkpoint that stays, and why."""

    checkpoint: Checkpoint
    why: KeepReason


class PrunePlan(msgspec.Struct, frozen=True, kw_only=True):
    """What a prune would do. ``freed_bytes``: what the deletions give back; newest first in both lists."""

    directory: str
    keep: tuple[Kept, ...]
    delete: tuple[Checkpoint, ...]
    freed_bytes: int
    resume_point: str | None


class PruneOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What a prune did. ``refused``: path and the reason why it was left alone after all."""

    deleted: tuple[str, ...]
    refused: tuple[tuple[str, str], ...]
    freed_bytes: int


def plan_prune(
    directory: Path,
    keep: int,
    *,
    deep: bool = True,
    progress: ProgressCallback | None = None,
    prove: Callable[[Path], Checkpoint] | None = None,
    globs: Sequence[str] = (),
) -> PrunePlan:
    """Keep the newest ``keep`` sound checkpoints of each series; list the older ones for deletion. Changes nothing.

    Series: see ``series_of``; two models in one directory, or an export beside full states, don't push each other out.
    ``deep``: those kept as the newest are read through first, so that sound ones are not given up for one that holds
    NaN; ``prove`` does so in place of ``verify`` (for who remembers what is proven). Always kept: the resume point,
    whatever is not complete (bad ones are evidence, unfinished ones not ours), the nearest sound neighbour of each bad
    one, and links. ``globs``: as for ``list_checkpoints``. Raises ValueError for ``keep`` below 1, and as
    ``list_checkpoints``.
    """
    if keep < 1:
        raise ValueError(f"--keep must be at least 1, not {keep}: the resume point always stays")
    listing = list_checkpoints(directory, globs)
    found = list(listing.checkpoints)
    sound = [checkpoint.verdict == "complete" for checkpoint in found]
    why: dict[str, KeepReason] = {}
    resume: str | None = None
    newest: Counter[str] = Counter()
    for place, checkpoint in enumerate(found):
        if not sound[place]:
            why[checkpoint.path] = "not complete"
            continue
        series = series_of(checkpoint.name)
        if newest[series] >= keep:
            continue
        if deep:
            path = Path(checkpoint.path)
            checked = prove(path) if prove is not None else verify(path, deep=True, progress=progress)
            if checked.verdict != "complete":
                found[place] = checked
                sound[place] = False
                why[checkpoint.path] = "deep check failed"
                continue
        newest[series] += 1
        why[checkpoint.path] = "newest"
        if resume is None:
            resume = checkpoint.path
            why[checkpoint.path] = "resume point"
    if listing.resume_point is not None and listing.resume_point not in why:
        why[listing.resume_point] = "resume point"
    for neighbour in _neighbours(found, sound):
        why.setdefault(neighbour, "neighbour of a bad one")
    targets = {os.path.realpath(checkpoint.path) for checkpoint in found if Path(checkpoint.path).is_symlink()}
    for checkpoint in found:
        if Path(checkpoint.path).is_symlink() or os.path.realpath(checkpoint.path) in targets:
            why.setdefault(checkpoint.path, "a link")
    delete = tuple(checkpoint for checkpoint in found if checkpoint.path not in why)
    return PrunePlan(
        directory=str(directory),
        keep=tuple(
            Kept(checkpoint=checkpoint, why=why[checkpoint.path]) for checkpoint in found if checkpoint.path in why
        ),
        delete=delete,
        freed_bytes=sum(checkpoint.size_bytes for checkpoint in delete),
        resume_point=resume,
    )


def _neighbours(found: list[Checkpoint], sound: list[bool]) -> list[str]:
    """For each bad checkpoint the nearest older sound one (the way back), or the nearest newer if none is older."""
    kept: list[str] = []
    for place, good in enumerate(sound):
        if good:
            continue
        older = next((index for index in range(place + 1, len(found)) if sound[index]), None)
        newer = next((index for index in range(place - 1, -1, -1) if sound[index]), None)
        chosen = older if older is not None else newer
        if chosen is not None:
            kept.append(found[chosen].path)
    return kept


def apply_prune(plan: PrunePlan) -> PruneOutcome:
    """Delete what the plan lists, oldest first, each looked at once more.

    Left alone: what is no longer as planned (size, time, verdict), links, what does not lie directly in the directory.
    Never raises for a single checkpoint.
    """
    directory = Path(plan.directory)
    real = os.path.realpath(directory)
    deleted: list[str] = []
    refused: list[tuple[str, str]] = []
    freed = 0
    for checkpoint in reversed(plan.delete):
        path = Path(checkpoint.path)
        objection = _objection(checkpoint, path, real)
        if objection is None:
            try:
                _delete(path)
            except OSError as error:
                objection = f"could not be deleted: {error.strerror}"
        if objection is None:
            deleted.append(checkpoint.path)
            freed += checkpoint.size_bytes
        else:
            refused.append((checkpoint.path, objection))
    sync_directory(directory)
    return PruneOutcome(deleted=tuple(deleted), refused=tuple(refused), freed_bytes=freed)


def _objection(checkpoint: Checkpoint, path: Path, real_directory: str) -> str | None:
    if path.is_symlink():
        return "is a link"
    if os.path.realpath(path.parent) != real_directory or os.path.realpath(path) != str(
        Path(real_directory) / path.name
    ):
        return "does not lie in the directory"
    now = inspect(path)
    if now is None:
        return "is gone"
    if now != checkpoint:
        return "changed since the plan was made"
    return None


def _delete(path: Path) -> None:
    if path.is_dir():
        # renamed first: a deletion that is cut off leaves nothing that looks like a checkpoint. rmtree follows no link
        doomed = path.with_name(f".{path.name}.deleting")
        path.rename(doomed)
        shutil.rmtree(doomed)
        return
    if path.name.endswith(INDEX_SUFFIX):
        subject = subject_of(path)
        shards = [member.path for member in subject.members.files.values()] if subject is not None else []
        path.unlink()
        for shard in shards:
            shard.unlink(missing_ok=True)
        return
    path.unlink()
