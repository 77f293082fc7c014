"""Which checkpoints may be deleted, and their deletion. Nothing is deleted without a plan that lists it."""

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from ...atomic_files import sync_directory
from ...model.checkpoint import Checkpoint, KeepReason, Kept, PrunePlan
from ...model.checkpoint_files import series_of
from ...model.checkpoint_suffixes import INDEX_SUFFIX
from ..formats.byte_range import Damage, ProgressCallback
from ..formats.tensor_file import read_json
from ..inspection import inspect, subject_of, verify
from ..layouts.frameworks import TRANSFORMERS_STATE
from ..listing import list_checkpoints


class PruneOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What a prune did. ``refused``: path and the reason why it was not deleted."""

    deleted: tuple[str, ...]
    refused: tuple[tuple[str, str], ...]
    freed_bytes: int


def plan_prune(
    directory: Path,
    keep: int,
    *,
    deep: bool = True,
    progress: ProgressCallback | None = None,
    verify_deep: Callable[[Path], Checkpoint] | None = None,
    globs: Sequence[str] = (),
    good: Callable[[Sequence[Checkpoint]], Mapping[str, KeepReason]] = lambda _found: {},
) -> PrunePlan:
    """Keep the newest ``keep`` complete checkpoints of each series; list the older ones for deletion. Changes nothing.

    Series: see ``series_of``; two models in one directory, or an export beside full states, are counted separately.
    ``deep``: the ones kept as the newest are verified first, so that none is deleted in favour of one that holds
    NaN; ``verify_deep`` replaces ``verify`` (for a caller that remembers verdicts). Always kept: the resume point,
    what is not complete (damaged ones are evidence, unfinished ones are being written), the nearest complete
    neighbour of each damaged one, links with their targets, and what transformers calls the best. ``globs``: as for
    ``list_checkpoints``. ``good``: path → why it is kept. Raises ValueError for ``keep`` below 1, and as that.
    """
    if keep < 1:
        raise ValueError(f"--keep must be at least 1, not {keep}: the resume point is always kept")
    found = list(list_checkpoints(directory, globs).checkpoints)
    why: dict[str, KeepReason] = {}
    newest: Counter[str] = Counter()
    for place, checkpoint in enumerate(found):
        if checkpoint.verdict != "complete":
            why[checkpoint.path] = "not complete"
            continue
        series = series_of(checkpoint.name)
        if newest[series] >= keep:
            continue
        if deep:
            path = Path(checkpoint.path)
            checked = verify_deep(path) if verify_deep else verify(path, deep=True, progress=progress)
            if checked.verdict != "complete":
                found[place] = checked
                why[checkpoint.path] = "deep check failed"
                continue
        newest[series] += 1
        why[checkpoint.path] = "newest"
    resume = next((c for c in found if c.verdict == "complete"), None)
    if resume is not None:
        why[resume.path] = "resume point"
    why = {**good(found), **why}
    best = ""
    for checkpoint in reversed(found):  # the newest that tells it
        with suppress(Damage, OSError):
            state = read_json(Path(checkpoint.path) / TRANSFORMERS_STATE, "a state file")
            best = str(state.get("best_model_checkpoint") or best)
    for checkpoint in found:
        if checkpoint.name == Path(best).name:  # its trainer loads that one at its end
            why.setdefault(checkpoint.path, "has the best score")
    for neighbour in _neighbours(found):
        why.setdefault(neighbour, "next to a damaged one")
    targets = {os.path.realpath(entry.path) for entry in os.scandir(directory) if entry.is_symlink()}
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
        resume_point=None if resume is None else resume.path,
    )


def _neighbours(found: list[Checkpoint]) -> list[str]:
    """For each damaged checkpoint the nearest older complete one, or the nearest newer one if none is older."""
    kept: list[str] = []
    for place, checkpoint in enumerate(found):
        if checkpoint.verdict != "complete":
            nearest = (*found[place + 1 :], *found[:place][::-1])
            kept += [each.path for each in nearest if each.verdict == "complete"][:1]
    return kept


def apply_prune(plan: PrunePlan) -> PruneOutcome:
    """Delete what the plan lists, oldest first, each inspected once more.

    Not deleted: what is no longer as planned (size, time, verdict), links, what is not directly in the directory.
    Never raises for a single checkpoint.
    """
    real = os.path.realpath(plan.directory)
    deleted: list[str] = []
    refused: list[tuple[str, str]] = []
    freed = 0
    for checkpoint in reversed(plan.delete):
        path = Path(checkpoint.path)
        try:
            objection = _objection(checkpoint, path, real)
            if objection is None:
                _delete(path)
        except OSError as error:
            objection = f"could not be deleted: {error.strerror}"
        if objection is None:
            deleted.append(checkpoint.path)
            freed += checkpoint.size_bytes
        else:
            refused.append((checkpoint.path, objection))
    sync_directory(plan.directory)
    return PruneOutcome(deleted=tuple(deleted), refused=tuple(refused), freed_bytes=freed)


def _objection(checkpoint: Checkpoint, path: Path, real_directory: str) -> str | None:
    if path.is_symlink():
        return "is a link"
    if os.path.realpath(path.parent) != real_directory or os.path.realpath(path) != str(
        Path(real_directory) / path.name
    ):
        return "does not lie in the directory"
    now = inspect(path)
    return "was removed" if now is None else "changed since the plan was made" if now != checkpoint else None


def _delete(path: Path) -> None:
    import shutil  # slow to import

    if path.is_dir():
        # renamed first, so that an interrupted deletion leaves nothing that looks like a checkpoint
        renamed = path.with_name(f".{path.name}.deleting")
        path.rename(renamed)
        shutil.rmtree(renamed)
        return
    subject = subject_of(path) if path.name.endswith(INDEX_SUFFIX) else None
    path.unlink()
    for shard in () if subject is None else subject.members.files.values():
        shard.path.unlink(missing_ok=True)
