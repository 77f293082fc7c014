"""The resume point among the known checkpoints: the newest verified one from before the failure.

Files from before this run are never resumed from automatically: an old directory is not this training. Neither are
those that the run left behind when it went back to an older one, nor those that cannot be passed to a launch.
"""

import re
from collections.abc import Callable, Sequence

import msgspec

from ...model.checkpoint_files import is_companion, is_text, kind_of_name, parts_among, says_state
from ...model.observation import OutputSeen
from ...model.preset import ResumeSupport
from ...model.run import is_below
from ..scales import BUSY_S, KEPT, LAG_S, LASTS_S, MINUTE_S, SAVE_GAP_S, TWICE
from .checkpoint_index import CheckpointIndex, KnownCheckpoint, age_of, base_name, by_age, find, is_verified, newest_of

replace = msgspec.structs.replace

ANYTHING = ResumeSupport()


def to_begin_from(
    index: CheckpointIndex,
    support: ResumeSupport,
    *,
    wanted: str | None = None,
    before_t: float | None = None,
    first: str | None = None,
    settled: bool = True,
) -> tuple[str | None, KnownCheckpoint | None]:
    """Return what the next attempt resumes from, and what is known of it: the ways to resume in the order of trust.

    The checkpoint that a person named (``wanted``); the newest verified one; what the attempt itself resumed from
    outside the watched folders (``first``); state that is not understood and that a launch may be given.
    ``before_t``, ``settled``: as for ``newest_verified`` and ``to_resume_from``.
    """
    if wanted is not None:
        return wanted, find(index, wanted)
    known = newest_verified(index, support, before_t=before_t, keep=first)
    if known is None and first is not None and support.forms and find(index, first) is None:
        return first, None
    if known is None:
        known = to_resume_from(index, support, before_t, settled=settled)
    return (None, None) if known is None else (known.path, known)


def newest_verified(
    index: CheckpointIndex, support: ResumeSupport = ANYTHING, *, before_t: float | None = None, keep: str | None = None
) -> KnownCheckpoint | None:
    """Return the resume point, or None. ``before_t``: completed before this run time.

    One in doubt is passed over if there is another one, and so is a part of a save (an EMA) for its main file.
    ``keep``: a path from elsewhere that counts as well. Weights alone, such as an export, never replace a whole state,
    unless the framework resumes from weights.
    """
    usable = _without_copied_in([k for k in _usable(index, support, keep) if before_t is None or k.t < before_t])
    if not support.weights_are_enough and any(k.holds == "state" for k in usable):
        usable = [k for k in usable if k.holds != "weights"]
    parts = parts_among(base_name(k.path) for k in usable)
    usable = [k for k in usable if base_name(k.path) not in parts]
    return newest_of([k for k in usable if not k.doubted] or usable)


def _usable(index: CheckpointIndex, support: ResumeSupport, keep: str | None = None) -> list[KnownCheckpoint]:
    """Return the verified ones that a launch can be given."""
    return [k for k in index.known if is_verified(k, keep) and support.objection(k.shape, k.holds) is None]


def _without_copied_in(usable: list[KnownCheckpoint]) -> list[KnownCheckpoint]:
    """Leave out those that came with a time from before the run, if it gives its own saves the present time.

    A person may have copied them in. One whose step lies between the last save and where the run was is its own.
    """
    usual = [k for k in usable if not _came_with_old_time(k)]
    if not usual:
        return usable
    steps = [k.step for k in usual if k.step is not None]

    def goes_on(known: KnownCheckpoint) -> bool:
        if known.step is None or known.position is None or not steps:
            return False
        return max(steps) < known.step <= known.position

    return [k for k in usable if not _came_with_old_time(k) or goes_on(k)]


def _came_with_old_time(known: KnownCheckpoint) -> bool:
    return known.changed is not None and known.written == known.changed


def of_unknown_origin(index: CheckpointIndex) -> tuple[KnownCheckpoint, ...]:
    """Return what may be a checkpoint of this run and is not known to be, oldest first."""
    found = [k for k in index.known if k.unsure and k.left is None and not k.fresh]
    return by_age(k for k in found if not k.unknown_make or says_state(base_name(k.path)))


def newest_own(index: CheckpointIndex) -> KnownCheckpoint | None:
    """Return the newest checkpoint that this run wrote, whatever its state."""
    return newest_of(k for k in index.known if k.own)


def left_behind(index: CheckpointIndex, path: str | None, support: ResumeSupport) -> tuple[str, ...]:
    """Return the run's own verified ones that are newer than ``path``, for a run that goes back to it.

    All of them for a path from elsewhere, and for None (the beginning). Those that a launch cannot be given are left
    out, and the one in doubt: the run may come back to it.
    """
    return tuple(k.path for k in _usable(index, support) if k.own and not k.doubted and _is_newer(k, find(index, path)))


def _is_newer(known: KnownCheckpoint, than: KnownCheckpoint | None) -> bool:
    return than is None or age_of(known) > age_of(than)


def damaged_after(
    index: CheckpointIndex, good: KnownCheckpoint | None, *, before_t: float | None = None
) -> tuple[KnownCheckpoint, ...]:
    """Return the run's own damaged ones newer than ``good``, not reported and not of the NaN, oldest first."""

    def is_untold(known: KnownCheckpoint) -> bool:
        if known.bad is None or known.damage is None:
            return True
        of_nan = known.damage[0] == "nonfinite" and before_t is not None and known.t >= before_t
        return not known.reported and known.bad == known.damage[1] and known.left is None and not of_nan

    damaged = [k for k in index.known if k.own and k.damage is not None and not k.is_state and is_untold(k)]
    return by_age(k for k in damaged if _is_newer(k, good))


# A trainer that chooses its checkpoint by itself takes the newest file, whether it is whole or not.
#
# Source: scripts that load the newest file of their folder, or always the same one. It was torn by the crash, and each
# restart "from" the whole one before it loaded the torn one and ended.


def in_front(
    index: CheckpointIndex, path: str | None, before_t: float | None, *, trained: bool
) -> tuple[KnownCheckpoint, ...]:
    """Return the run's own that are newer than ``path`` and damaged, or not from before ``before_t``, oldest first.

    Until an attempt has ``trained``, those that stood there before the run as well.
    """
    found = [k for k in index.known if k.unclear is None and (k.own or not trained)]
    good = find(index, path) or newest_of(k for k in found if not k.own and k.complete and k.bad is None)
    newer = [k for k in found if k.path != path and _is_newer(k, good)]
    return by_age(k for k in newer if k.damage or k.bad is not None or (before_t is not None and k.t >= before_t))


def start_in_words(path: str | None, step: int | None, front: Sequence[KnownCheckpoint] = ()) -> str:
    """Return what an attempt starts from, as far as it is known. ``front``: what the trainer may take instead."""
    named = "" if path is None else base_name(path) + (f" (step {step})" if step is not None else "")
    if not front:
        return f"from {named}" if named else "from the beginning"
    whole, newest = f"the newest whole one is {named}" if named else "no whole one of this run is known", front[-1]
    is_what = "newer" if newest.damage is None else newest.damage[0]
    return f"as the trainer chooses: {whole}; {base_name(newest.path)} is {is_what} and may be taken"


# A way to resume that was concluded from the trainer's source: what its first resumes have shown.
#
# Until one was taken, the state that it resumes from is copied aside before each launch, so that a wrong conclusion
# costs time and no state. Source: trainers have options that look like a resume and load weights only, or nothing at
# all.


class FoundResume(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``proven``: a resume by it was taken. ``kept``: the checkpoint (path, mtime) that was copied last.

    ``copies``: the folders with copies, the newest last.
    """

    proven: bool = False
    kept: tuple[str, float | None] | None = None
    copies: tuple[str, ...] = ()


# Whether a trainer ended because it does not know the option that a resume added to its command.

_REFUSES = re.compile(
    r"(?i)unrecogni[sz]ed|not recogni[sz]ed|no such option|unknown|expected|could not (?:consume|override)"
    r"|not used by|\bnot in\b"
)
"""What argparse, click, typer, absl, fire, tyro, getopt, optparse, hydra, OmegaConf and dataclasses say of it."""


def refused(names: Sequence[str], lines: Sequence[str], class_: str) -> str:
    """The name among ``names`` of which one of the last lines says that it is not known; "" if none does."""
    said = [line for line in lines if _REFUSES.search(line) and class_ in {"config_error", "unknown", "code_bug"}]
    return next((name for name in names if any(_names(name, line) for line in said)), "")


def _names(option: str, line: str) -> bool:
    """Whether the line has the option as it is written, or its name in quotes."""
    quoted = rf"""['"`]\+*(?:[\w.]+\.)?{re.escape(option.lstrip("-"))}['"`]"""
    written = rf"(?<![\w\[-]){re.escape(option)}(?![\w-])|" if option.startswith("-") else ""
    return "Command '" not in line and re.search(written + quoted, line) is not None


# State of the training that is not understood: what in the output folder is it, and whether a launch may be given it.
#
# Source: trainers whose checkpoints had a suffix that is not known, or were torn by the rules of a layout that they do
# not follow. They counted as none: the run began anew and wrote over them. Here an entry counts as state unless
# something says that it is none: what was written before the first step and never again (data, a tokenizer), and what
# the death of its writer cut off. Known false alarm: a file of results without a known name; it holds a run that has
# no checkpoint.

STILL_S = 0.9
"""What had not changed for this long when it was looked at was not being written (``watch.settle_s`` is 1)."""
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
                # No step in the log: its trainer lived on. Else a later step shows that the folder is finished.
                return training.now_t >= known.t + LASTS_S
            return training.last_t >= known.t + SAVE_GAP_S
        # By its name, when it was written, or that it was written again.
        if says_state(name) or known.t < training.start_t:  # it was no state by the end of the attempt that wrote it
            return says_state(name)
        again = known.before_t is not None and known.before_t >= training.start_t
        return _is_of_training(known.t, training, again=again or sum(k.unknown_make for k in alike) > 1)

    return tuple(
        k for k in own if k.unclear is not None and k.left is None and k.bad is None and not k.is_state and is_state(k)
    )


def early(index: CheckpointIndex, training: Training) -> list[str]:
    """Return the paths of what an attempt that began anew wrote once, before its first step: data, as a save is none.

    Source: ``out/train_data.pt`` was given to ``--resume`` until the run was given up. What holds a state, or a step or
    an epoch, or is named as a state is a save; so is any file of an attempt whose first step is not known.
    """
    begun_t, first_t = training.start_t, float("-inf") if training.first_t is None else training.first_t
    found = [k for k in index.known if k.own and k.complete and k.holds != "state" and k.step is None is k.epoch]
    found = [k for k in found if (k.before_t or -BUSY_S) + LAG_S < begun_t <= k.t < first_t - BUSY_S]
    return [k.path for k in found if not says_state(base_name(k.path))]


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
    return by_age(k for k in index.known if k.is_state and k.own and k.left is None)


def not_to_be_given(index: CheckpointIndex, support: ResumeSupport) -> tuple[KnownCheckpoint, ...]:
    """Return the run's verified checkpoints that the command has no form for, oldest first."""
    verified = [k for k in index.known if is_verified(k) and k.own]
    return by_age(k for k in verified if support.forms and support.objection(k.shape, k.holds))


def has_understood(index: CheckpointIndex) -> bool:
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
    usable = [k for k in found if k.bad is None and not k.doubted and support.objection(k.shape, k.holds) is None]
    usable = [k for k in usable if before_t is None or k.t < before_t]
    usable = [k for k in usable if k.unknown_make or _is_always_so(k, found)]
    main = usable if support.by_itself else _main_files(usable)
    whole = [k for k in main if (k.still_s is None or k.still_s >= STILL_S or not settled) and not _is_cut_off(k, main)]
    series = [k for k in found if any(_series(k) == _series(each) for each in main)]
    again = len({age_of(k) for k in series}) > 1 or any(k.size_before is not None or k.resumed for k in series)
    if not (again or any(says_state(base_name(k.path)) for k in main)):
        return None  # only its second writing shows that it is saved again and again
    return newest_of(whole)


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
    if known.resumed is not None and known.unclear == known.resumed:
        return True
    if known.unfinished:
        return False
    alike = [k for k in found if _series(k) == _series(known) and not k.unfinished]
    findings = [k.unclear or ("", "") for k in alike]
    # Saves with the same finding show that the trainer writes them so: it is no damage.
    return len(alike) >= TWICE and len({(verdict, _DETAILS.sub("", why)) for verdict, why in findings}) == 1


def _is_cut_off(known: KnownCheckpoint, others: list[KnownCheckpoint]) -> bool:
    """Whether it is much smaller than the one before it. A save may grow: of trees, or of a memory."""
    older = newest_of(k for k in others if _series(k) == _series(known) and age_of(k) < age_of(known))
    before = known.size_before if older is None else older.size_bytes
    return before is not None and known.size_bytes is not None and before > TWICE * known.size_bytes


def _series(known: KnownCheckpoint) -> str:
    """Its name without numbers and without words for a place: ``best.q7`` and ``last.q7`` are of one series."""
    return _PLACES.sub("", kind_of_name(base_name(known.path)))


# Which folders the run saves to, told from the checkpoints that its processes were seen to write.
#
# Only a sighting that is sure makes a folder one of the run's: the writer was seen, nobody else can have been it, or
# the run's own log names the file as it appears. Any other one is no resume point and nothing is judged by it. It keeps
# a restart from beginning anew over what may be the run's (``unclear``), as long as no folder is known for certain.
#
# A checkpoint that was written before the first step is no output: a model that the trainer downloads, a cache of the
# data. If the log shows no steps, two saves or the end of the attempt stand for the first step. Known false alarm: a
# copy of another model that the trainer makes while it trains; it becomes one more folder that is watched.

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
    return replace(outputs, seen=(*kept, new)[-KEPT:])


def with_log(outputs: OutputFolders, text: str, cwd: str, t: float) -> OutputFolders:
    """Take new lines of the run's log, read at ``t``: they may name what has just appeared."""
    if all(s.sure for s in outputs.seen):
        return outputs
    seen = tuple(
        # Later it tells of something else: it was read again, or evaluated.
        _named(s) if not s.sure and t - s.t <= MINUTE_S and is_named(text, s.path, cwd) else s
        for s in outputs.seen
    )
    return outputs if seen == outputs.seen else replace(outputs, seen=seen)


def _named(one: Sighting) -> Sighting:
    name = one.path.rpartition("/")[2]
    return replace(one, sure=True, evidence=f"{name}: {NAMED}")


def is_named(text: str, path: str, cwd: str) -> bool:
    """Whether a text names this path, absolute or from the working folder; a name without a folder is not enough."""
    for shown in (path, path.removeprefix(f"{cwd}/")):
        here = r"(?:\./)?" if "/" in shown else r"\./"
        whole = rf"(?<![\w/.~-]){here}{re.escape(shown)}(?![\w-]|\.[^\W_])"
        if shown in text and re.search(whole, text) is not None:
            return True
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
    left = tuple(s for s in outputs.seen if s.folder != folder)
    return OutputFolders(known=(*outputs.known, folder), seen=left)


def _is_made_in_training(one: Sighting, saves: list[Sighting], training: Training) -> bool:
    if one.attempt != training.attempt:
        return False
    # Several saves stand for the first step, if the log shows none; the time of a file is exact, a line is read late.
    return _is_of_training(one.t, training, again=len(saves) >= TWICE, late_s=BUSY_S)
