"""Which checkpoints may be deleted, and their deletion. Nothing is deleted without a plan that lists it."""

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from ...atomic_files import sync_directory
from ...model.checkpoint import Checkpoint, KeepReason, Kept, PrunePlan
from ...model.checkpoint_files import kind_of_name, numbers_in, series_of
from ..formats.byte_range import Damage
from ..formats.tensor_file import read_json
from ..inspection import inspect, parts_of, subject_of, verify
from ..layouts.frameworks import TRANSFORMERS_STATE
from ..layouts.sets import Member, saved_with
from ..listing import list_checkpoints

_WANTED: frozenset[KeepReason] = frozenset({"has the best score", "rated 4 or 5 stars", "a link"})
"""Of what is kept for these, the other main files of its save are kept, too."""


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
    verify_deep: Callable[[Path], Checkpoint] = lambda path: verify(path, deep=True),
    globs: Sequence[str] = (),
    good: Callable[[Sequence[Checkpoint]], Mapping[str, KeepReason]] = lambda _found: {},
) -> PrunePlan:
    """Keep the newest ``keep`` complete checkpoints of each series; list the older ones for deletion. Changes nothing.

    Series: see ``series_of``; two models in one directory, or an export beside full states, are counted separately.
    ``deep``: the ones kept as the newest are verified first, so that none is deleted in favour of one that holds
    NaN; ``verify_deep`` replaces ``verify`` (for a caller that remembers verdicts). Always kept: the resume point,
    what is not complete (damaged ones are evidence, unfinished ones are being written), the nearest complete
    neighbour of each damaged one, links with their targets, what transformers calls the best, and parts that were
    saved with a kept one. ``globs``: as for ``list_checkpoints``. ``good``: path → why it is kept.
    Raises ValueError for ``keep`` below 1, and as that.
    """
    if keep < 1:
        raise ValueError(f"--keep must be at least 1, not {keep}: the resume point is always kept")
    found = list(list_checkpoints(directory, globs).checkpoints)
    why: dict[str, KeepReason] = {}
    newest: Counter[str] = Counter()
    for place, checkpoint in enumerate(found):
        series = series_of(checkpoint.name)
        if checkpoint.verdict != "complete":
            why[checkpoint.path] = "not complete"
        elif newest[series] < keep:
            found[place] = checked = verify_deep(Path(checkpoint.path)) if deep else checkpoint
            newest[series] += checked.verdict == "complete"
            why[checkpoint.path] = "newest" if checked.verdict == "complete" else "deep check failed"
    resume = next((c for c in found if c.verdict == "complete"), None)
    if resume is not None:
        why[resume.path] = "resume point"
    why = {**good(found), **why}
    best = ""
    for checkpoint in reversed(found):  # the newest that tells it
        with suppress(Damage, OSError):
            state = read_json(Path(checkpoint.path) / TRANSFORMERS_STATE, "a state file")
            best = str(state.get("best_model_checkpoint") or best)
    targets = {os.path.realpath(entry.path) for entry in os.scandir(directory) if entry.is_symlink()}
    for place, checkpoint in enumerate(found):
        if checkpoint.name == Path(best).name:  # its trainer loads that one at its end
            why.setdefault(checkpoint.path, "has the best score")
        if checkpoint.verdict != "complete":  # the nearest older one, or the nearest newer one if none is older
            nearest = (c.path for c in (*found[place + 1 :], *found[:place][::-1]) if c.verdict == "complete")
            why.setdefault(next(nearest, ""), "next to a damaged one")
        if Path(checkpoint.path).is_symlink() or os.path.realpath(checkpoint.path) in targets:
            why.setdefault(checkpoint.path, "a link")
    beside = {each.path: saved_with(Path(each.path)) for each in found}
    kinds = {path: {kind_of_name(other.name) for other in others} for path, others in beside.items()}
    with_kept = set[str]().union(*(kinds[each.path] for each in found if each.path in why))
    parts = {each.path: parts_of(Path(each.path)) for each in found if each.path not in why}
    for checkpoint in found:
        last = any(kind_of_name(name) not in with_kept for name in parts.get(checkpoint.path, ()))
        if last or why.get(checkpoint.path) in _WANTED:
            with_kept |= kinds[checkpoint.path]
            for path in (checkpoint.path, *map(str, beside[checkpoint.path])):
                why.setdefault(path, "the newest with such parts" if last else "saved with a kept one")
    delete: list[Checkpoint] = []
    kept, stay = {numbers_in(each.name) for each in found if each.path in why}, {Path(path).name for path in targets}
    for checkpoint in found:
        if checkpoint.path not in why:
            others = (other for other in beside[checkpoint.path] if str(other) not in beside)
            shared = numbers_in(checkpoint.name) in kept or any(inspect(other) is not None for other in others)
            own = {} if shared else parts[checkpoint.path]
            own = {name: size for name, size in own.items() if name not in stay}
            size = checkpoint.size_bytes + sum(own.values())
            delete.append(msgspec.structs.replace(checkpoint, parts=tuple(own), size_bytes=size))
            stay |= own.keys()  # they go with the one of their save that is deleted last
    return PrunePlan(
        directory=str(directory),
        keep=tuple(Kept(checkpoint=each, why=why[each.path]) for each in found if each.path in why),
        delete=tuple(delete),
        freed_bytes=sum(checkpoint.size_bytes for checkpoint in delete),
        resume_point=None if resume is None else resume.path,
    )


def apply_prune(plan: PrunePlan) -> PruneOutcome:
    """Delete what the plan lists, oldest first. Never raises for a single checkpoint."""
    done = [(checkpoint, delete_planned(checkpoint)) for checkpoint in reversed(plan.delete)]
    return PruneOutcome(
        deleted=tuple(checkpoint.path for checkpoint, why in done if why is None),
        refused=tuple((checkpoint.path, why) for checkpoint, why in done if why is not None),
        freed_bytes=sum(checkpoint.size_bytes for checkpoint, why in done if why is None),
    )


def delete_planned(checkpoint: Checkpoint) -> str | None:
    """Delete a checkpoint of a plan with its parts, inspected once more; or why not. Raises nothing.

    Not deleted: what is no longer as planned (size, time, whole by itself), links, and one whose parts another main
    file of its save needs.
    """
    path = Path(checkpoint.path)
    try:
        if path.is_symlink():
            return "is a link"
        beside = saved_with(path) if checkpoint.parts else []
        if any(inspect(other) is not None for other in beside):
            return "has parts that belong to another one of its save, too"
        if not {*checkpoint.parts} <= {other.name for other in beside}:
            return "has parts that were written again"
        subject, parts = subject_of(path), [Member.at(path.with_name(name)) for name in checkpoint.parts]
        size = None if subject is None else subject.members.size_bytes + sum(part.size_bytes for part in parts)
        # whole by itself: the other half of its save may have been deleted just now
        whole = subject is not None and not subject.examine(None).damages
        if subject is None or not whole or (size, subject.mtime) != (checkpoint.size_bytes, checkpoint.mtime):
            return "changed since the plan was made"
        for part in parts:
            part.path.unlink()
        if path.is_dir():
            import shutil  # slow to import

            # renamed first, so that an interrupted deletion leaves nothing that looks like a checkpoint
            renamed = path.with_name(f".{path.name}.deleting")
            path.rename(renamed)
            shutil.rmtree(renamed)
        else:
            for file in (path, *(shard.path for shard in subject.members.files.values())):
                file.unlink(missing_ok=True)
        sync_directory(path.parent)
    except OSError as error:
        return f"could not be deleted: {error.strerror}"
    return None
