"""Which folders the run saves to, told from the checkpoints that its processes were seen to write.

Only a sighting that is sure makes a folder one of the run's: the writer was seen, nobody else can have been it, or the
run's own log names the file as it appears. Any other one is no resume point and nothing is judged by it. It keeps a
restart from beginning anew over what may be the run's (``unclear``), as long as no folder is known for certain.

A checkpoint that was written before the first step is no output: a model that the trainer downloads, a cache of the
data. If the log shows no steps, two saves or the end of the attempt stand for the first step. Known false alarm: a copy
of another model that the trainer makes while it trains; it becomes one more folder that is watched.
"""

import re
from collections.abc import Callable, Sequence

import msgspec

from ...model.checkpoint_files import is_companion, is_text, kind_of_name, says_state
from ...model.observation import OutputSeen
from ...model.resume import ResumeSupport
from ...model.run import is_below
from .checkpoint_index import CheckpointIndex, KnownCheckpoint, age_of, base_name, is_verified

replace = msgspec.structs.replace

# State of the training that is not understood: what in the output folder is it, and whether a launch may be given it.
#
# Source: trainers whose checkpoints had a suffix that is not known, or were torn by the rules of a layout that they do
# not follow. They counted as none: the run began anew and wrote over them. Here an entry counts as state unless
# something says that it is none: what was written before the first step and never again (data, a tokenizer), and what
# the death of its writer cut off. Known false alarm: a file of results without a known name; it holds a run that has
# no checkpoint.

WENT_ON_S = 3.0
"""A step this long after a folder was written shows that its trainer took it for finished."""
OUTLIVED_S = 10.0
"""The same without any step in the log: its trainer lived on for this long."""
STILL_S = 0.9
"""What had not changed for this long when it was looked at was not being written (``watch.settle_s`` is 1)."""
SIZE_RATIO = 2.0
"""A checkpoint that is smaller than the one before by more than this may be cut off."""
_ALIKE = 2
"""So many saves with the same finding show that the trainer writes them so: it is no damage."""
_DETAILS = re.compile(r"\([^)]{0,80}\)|\d+")
"""What differs in the reasons of two saves: bytes, numbers."""
_PLACES = re.compile(r"last|latest|best|final|newest|current", re.IGNORECASE)


class Training(msgspec.Struct, frozen=True, kw_only=True):
    """When the attempt trained, in run seconds. ``first_t``, ``last_t``: its first and newest step; None = none seen.

    ``attempt``: its number. ``over``: it is not running. ``steps_are_shown``: the log of this attempt or of an earlier
    one shows steps.
    """

    now_t: float
    start_t: float = 0.0
    over: bool = False
    first_t: float | None = None
    last_t: float | None = None
    steps_are_shown: bool = False
    attempt: int = 0


def recognised(index: CheckpointIndex, training: Training) -> tuple[KnownCheckpoint, ...]:
    """Return the entries that count as state from now on, oldest first."""
    own = [k for k in index.known if k.own]
    alone = not any((is_verified(k) or k.is_state) and not is_text(base_name(k.path)) for k in own)

    def is_state(known: KnownCheckpoint) -> bool:
        name = base_name(known.path)
        kind = kind_of_name(name)
        if not alone and is_text(name):
            return False
        alike = [k for k in own if kind_of_name(base_name(k.path)) == kind]
        if not known.unknown_make:  # one that is unfinished only if its trainer went on after it
            if not known.unfinished or known.was_so_before or any(k.t > known.t for k in alike):
                return True
            if training.last_t is None:
                return training.now_t >= known.t + OUTLIVED_S
            return training.last_t >= known.t + WENT_ON_S
        # By its name, when it was written, or that it was written again.
        if says_state(name) or known.t < training.start_t:  # it was no state by the end of the attempt that wrote it
            return says_state(name)
        again = known.before_t is not None and known.before_t >= training.start_t
        return _is_of_training(known.t, training, again=again or sum(k.unknown_make for k in alike) > 1)

    return tuple(
        k for k in own if k.unclear is not None and k.left is None and k.bad is None and not k.is_state and is_state(k)
    )


def _is_of_training(t: float, training: Training, *, again: bool, late_s: float = 0.0) -> bool:
    """Whether what was written at ``t`` came with or after the first step.

    If the log shows no step, the end of the attempt tells it, or a further save (``again``). ``late_s``: by which the
    log may have been read late at the end.
    """
    if training.first_t is not None:
        return t >= training.first_t - (late_s if training.over else 0.0)
    return not training.steps_are_shown and (training.over or again)


def states(index: CheckpointIndex) -> tuple[KnownCheckpoint, ...]:
    """Return the state of this run that is not understood, oldest first; not what the run left behind."""
    return tuple(sorted((k for k in index.known if k.is_state and k.own and k.left is None), key=age_of))


def not_to_be_given(index: CheckpointIndex, support: ResumeSupport) -> tuple[KnownCheckpoint, ...]:
    """Return the run's verified checkpoints that the command has no form for, oldest first."""
    found = [
        k for k in index.known if is_verified(k) and k.own and support.forms and support.objection(k.shape, k.holds)
    ]
    return tuple(sorted(found, key=age_of))


def has_understood(index: CheckpointIndex) -> bool:
    """Return whether the run has a verified checkpoint that is understood."""
    return any(is_verified(k) and k.unclear is None for k in index.known)


def to_resume_from(
    index: CheckpointIndex, support: ResumeSupport, before_t: float | None = None, *, settled: bool = True
) -> KnownCheckpoint | None:
    """Return the entry that is not understood and that a launch may be given, or None.

    Settled, not much smaller than the one before it, and of the main file of each save. A trainer that finds its
    checkpoint by itself is given no name, so that it need not be known which that is. One of an unknown make, or one
    that breaks the rules of a known make as the other saves of its trainer do. ``settled``: False before the folder is
    looked at again, which tells whether it has changed since.
    """
    found = states(index)
    usable = [
        k
        for k in found
        if (k.unknown_make or _is_always_so(k, found))
        and k.bad is None
        and not k.doubted
        and (before_t is None or k.t < before_t)
        and support.objection(k.shape, k.holds) is None
    ]
    main = usable if support.by_itself else _main_files(usable)
    whole = [k for k in main if (k.still_s is None or k.still_s >= STILL_S or not settled) and not _is_cut_off(k, main)]
    series = [k for k in found if any(_series(k) == _series(each) for each in main)]
    again = len(series) > 1 and len({age_of(k) for k in series}) > 1
    if not (
        again or any(says_state(base_name(k.path)) for k in main) or any(k.size_before is not None for k in series)
    ):
        return None  # only its second writing shows that it is saved again and again
    return max(whole, key=age_of, default=None)


def _main_files(usable: list[KnownCheckpoint]) -> list[KnownCheckpoint]:
    """The saves of the one series that is the main file of each save; none if that cannot be told.

    Not text beside anything else, nor what is called a part of a save (a replay buffer, the state of an optimizer), nor
    a name that says nothing beside one that speaks of a state.
    """
    rules: tuple[Callable[[str], bool], ...] = (lambda n: not is_text(n), lambda n: not is_companion(n), says_state)
    for is_main in rules:
        usable = [k for k in usable if is_main(base_name(k.path))] or usable
    return usable if len({_series(k) for k in usable}) == 1 else []


def is_left_to_the_trainer(index: CheckpointIndex, path: str) -> bool:
    """Return whether all saves of its trainer get the same finding, so that the rules do not apply to them."""
    found = states(index)
    return any(k.path == path and _is_always_so(k, found) for k in found)


def _is_always_so(known: KnownCheckpoint, found: Sequence[KnownCheckpoint]) -> bool:
    if known.unfinished:
        return False
    alike = [k for k in found if _series(k) == _series(known) and not k.unfinished]
    findings = [k.unclear or ("", "") for k in alike]
    return len(alike) >= _ALIKE and len({(verdict, _DETAILS.sub("", why)) for verdict, why in findings}) == 1


def _is_cut_off(known: KnownCheckpoint, others: list[KnownCheckpoint]) -> bool:
    """Whether it is much smaller than the one before it. A save may grow: of trees, or of a memory."""
    older = [k for k in others if _series(k) == _series(known) and age_of(k) < age_of(known)]
    before = known.size_before if not older else max(older, key=age_of).size_bytes
    return before is not None and known.size_bytes is not None and before > SIZE_RATIO * known.size_bytes


def _series(known: KnownCheckpoint) -> str:
    """Its name without numbers and without words for a place: ``best.q7`` and ``last.q7`` are of one series."""
    return _PLACES.sub("", kind_of_name(base_name(known.path)))


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
        return replace(outputs, seen=tuple(s for s in outputs.seen if s.sure or s.folder != seen.folder))
    t = seen.t if seen.mtime is None or created_wall <= 0.0 else min(seen.t, seen.mtime - created_wall)
    new = Sighting(folder=seen.folder, path=seen.path, t=t, evidence=seen.evidence, sure=seen.sure, attempt=attempt)
    if named and not new.sure:
        new = _named(new)
    before = next((s for s in outputs.seen if (s.path, s.t) == (new.path, new.t)), None)
    if before is not None and before.sure:
        return outputs
    kept = tuple(s for s in outputs.seen if s is not before)
    return replace(outputs, seen=(*kept, new)[-AT_MOST:])


def with_log(outputs: OutputFolders, text: str, cwd: str, t: float) -> OutputFolders:
    """Take new lines of the run's log, read at ``t``: they may name what has just appeared."""
    if all(s.sure for s in outputs.seen):
        return outputs
    seen = tuple(
        _named(s) if not s.sure and t - s.t <= NAMED_S and is_named(text, s.path, cwd) else s for s in outputs.seen
    )
    return outputs if seen == outputs.seen else replace(outputs, seen=seen)


def _named(one: Sighting) -> Sighting:
    name = one.path.rpartition("/")[2]
    return replace(one, sure=True, evidence=f"{name}: {NAMED}")


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
    return _is_of_training(one.t, training, again=len(saves) >= SAVES, late_s=LOG_LATE_S)
