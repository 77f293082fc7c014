"""Which folders the run saves to, told from the checkpoints that its processes were seen to write.

A checkpoint that was written before the first step is no output: a model that the trainer downloads, a cache of the
data. One alone that another process can have written as well says nothing; a second one does. If the log shows no
steps, two saves or the end of the attempt stand for the first step. What may be the run's and is not known to be keeps
a restart from beginning anew (``unclear``). Known false alarm: a copy of another model that the
trainer makes while it trains; it becomes one more folder that is watched, and nothing else follows.
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
SAVES = 2
"""So many saves in one folder show that it is one, if each of them alone does not."""


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


def with_sighting(outputs: OutputFolders, seen: OutputSeen, *, created_wall: float, attempt: int) -> OutputFolders:
    """Add a sighting. One of the same save replaces it, and stays sure."""
    t = seen.t if seen.mtime is None or created_wall <= 0.0 else min(seen.t, seen.mtime - created_wall)
    new = Sighting(folder=seen.folder, path=seen.path, t=t, evidence=seen.evidence, sure=seen.sure, attempt=attempt)
    before = next((s for s in outputs.seen if (s.path, s.t) == (new.path, new.t)), None)
    if before is not None and before.sure:
        return outputs
    kept = tuple(s for s in outputs.seen if s is not before)
    return msgspec.structs.replace(outputs, seen=(*kept, new)[-AT_MOST:])


def to_accept(
    outputs: OutputFolders,
    training: Training,
    told: str | None,
    index: CheckpointIndex,
    *,
    guess: bool = False,
) -> tuple[Sighting, ...]:
    """Return one sighting for each folder that is known from now on. ``told``: the output folder of the settings.

    A folder elsewhere than in the one that was told counts only while that one holds no checkpoint of the run.
    ``guess``: a sighting that is not sure is enough, once the attempt is over.
    """
    told_is_used = told is not None and any(k.own and k.complete and is_below(k.path, told) for k in index.known)
    found: list[Sighting] = []
    for folder in dict.fromkeys(s.folder for s in outputs.seen if s.folder not in outputs.known):
        if folder == told or (told is not None and told_is_used and not is_below(folder, told)):
            continue
        saves = [s for s in outputs.seen if s.folder == folder]
        made = [s for s in saves if _is_made_in_training(s, saves, training)]
        sure = [s for s in made if s.sure]
        if sure or len(made) >= SAVES or (made and guess and training.over):
            found.append((sure or made)[0])
    return tuple(found)


def unclear(outputs: OutputFolders, training: Training) -> tuple[Sighting, ...]:
    """Return what the run may have saved to folders that are not known as its own, oldest first."""
    left = [s for s in outputs.seen if s.folder not in outputs.known]
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
