"""Which folders the run saves to, told from the checkpoints that its processes were seen to write.

Only a sighting that is sure makes a folder one of the run's: the writer was seen, nobody else can have been it, or the
run's own log names the file as it appears. Any other one is no resume point and nothing is judged by it. It keeps a
restart from beginning anew over what may be the run's (``unclear``), as long as no folder is known for certain.

A checkpoint that was written before the first step is no output: a model that the trainer downloads, a cache of the
data. If the log shows no steps, two saves or the end of the attempt stand for the first step. Known false alarm: a copy
of another model that the trainer makes while it trains; it becomes one more folder that is watched.
"""

import msgspec

from ...model.launch.output_place import is_below
from ...model.observation import OutputSeen
from .checkpoint_index import CheckpointIndex
from .unclear_state import Training

AT_MOST = 64
"""Sightings that are remembered."""
LOG_LATE_S = 5.0
"""A line may be read so long after it was printed, on a busy machine; the time of a file is exact."""
NAMED_S = 60.0
"""A line that names a file so long after it appeared tells of something else: it was read again, or evaluated."""
SAVES = 2
"""So many saves in one folder stand for the first step, if the log shows none."""
NAMED = "the log of the run names it"


class Sighting(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A checkpoint that was seen in a folder that is not watched. ``t``: when it was written, in run seconds."""

    folder: str
    path: str
    t: float
    evidence: str
    sure: bool = False
    attempt: int = 0


class OutputFolders(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``known``: folders that were found; ``seen``: what may show further ones, oldest first."""

    known: tuple[str, ...] = ()
    seen: tuple[Sighting, ...] = ()


def with_sighting(
    outputs: OutputFolders, seen: OutputSeen, *, created_wall: float, attempt: int, named: bool = False
) -> OutputFolders:
    """Add a sighting. One of the same save replaces it, and stays sure. ``named``: the log names its path."""
    if seen.others:
        return msgspec.structs.replace(
            outputs, seen=tuple(s for s in outputs.seen if s.sure or s.folder != seen.folder)
        )
    t = seen.t if seen.mtime is None or created_wall <= 0.0 else min(seen.t, seen.mtime - created_wall)
    new = Sighting(folder=seen.folder, path=seen.path, t=t, evidence=seen.evidence, sure=seen.sure, attempt=attempt)
    if named and not new.sure:
        new = _named(new)
    before = next((s for s in outputs.seen if (s.path, s.t) == (new.path, new.t)), None)
    if before is not None and before.sure:
        return outputs
    kept = tuple(s for s in outputs.seen if s is not before)
    return msgspec.structs.replace(outputs, seen=(*kept, new)[-AT_MOST:])


def with_log(outputs: OutputFolders, text: str, cwd: str, t: float) -> OutputFolders:
    """Take new lines of the run's log, read at ``t``: they may name what has just appeared."""
    if all(s.sure for s in outputs.seen):
        return outputs
    seen = tuple(
        _named(s) if not s.sure and t - s.t <= NAMED_S and is_named(text, s.path, cwd) else s for s in outputs.seen
    )
    return outputs if seen == outputs.seen else msgspec.structs.replace(outputs, seen=seen)


def _named(one: Sighting) -> Sighting:
    name = one.path.rpartition("/")[2]
    return msgspec.structs.replace(one, sure=True, evidence=f"{name}: {NAMED}")


def is_named(text: str, path: str, cwd: str) -> bool:
    """Whether a text names this path, absolute or from the working folder; a name without a folder is not enough."""
    for shown in (path, path.removeprefix(f"{cwd}/")):
        at = text.find(shown)
        while at >= 0:
            here = text[:at].endswith("./")
            before = text[: at - 2 if here else at][-1:]
            after = text[at + len(shown) :][:2]
            whole = not (before.isalnum() or before in {"/", ".", "_", "-", "~"})
            ends = not (after[:1].isalnum() or after[:1] in {"_", "-"} or (after[:1] == "." and after[1:].isalnum()))
            if whole and ends and (here or "/" in shown):
                return True
            at = text.find(shown, at + 1)
    return False


def to_accept(
    outputs: OutputFolders, training: Training, told: str | None, index: CheckpointIndex
) -> tuple[Sighting, ...]:
    """Return one sighting for each folder that is known from now on. ``told``: the output folder of the settings.

    A folder elsewhere than in the one that was told counts only while that one holds no checkpoint of the run.
    """
    told_is_used = told is not None and any(k.own and k.complete and is_below(k.path, told) for k in index.known)
    found: list[Sighting] = []
    for folder in dict.fromkeys(s.folder for s in outputs.seen if s.folder not in outputs.known):
        if folder == told or (told is not None and told_is_used and not is_below(folder, told)):
            continue
        saves = [s for s in outputs.seen if s.folder == folder]
        found += [s for s in saves if s.sure and _is_made_in_training(s, saves, training)][:1]
    return tuple(found)


def unclear(outputs: OutputFolders, training: Training, told: str | None) -> tuple[Sighting, ...]:
    """Return what the run may have saved while none of its folders is known for certain, oldest first."""
    if outputs.known or told is not None:
        return ()
    left = outputs.seen
    return tuple(s for s in left if _is_made_in_training(s, [o for o in left if o.folder == s.folder], training))


def accepted(outputs: OutputFolders, folder: str) -> OutputFolders:
    """Return it with a further folder."""
    left = tuple(s for s in outputs.seen if s.folder != folder)
    return OutputFolders(known=(*outputs.known, folder), seen=left)


def _is_made_in_training(one: Sighting, saves: list[Sighting], training: Training) -> bool:
    if one.attempt != training.attempt:
        return False
    if training.first_t is not None:
        return one.t >= training.first_t or (training.over and one.t >= training.first_t - LOG_LATE_S)
    if training.steps_are_shown:
        return False
    return training.over or len(saves) >= SAVES
