"""The resume point among the known checkpoints: the newest verified one from before the failure.

Files from before this run are never resumed from automatically: an old directory is not this training. Neither are
those that the run left behind when it went back to an older one, nor those that cannot be passed to a launch.
"""

import re
from collections.abc import Sequence

import msgspec

from ...model.checkpoint_files import says_state
from ...model.resume import ResumeSupport
from . import output_folders
from .checkpoint_index import CheckpointIndex, KnownCheckpoint, age_of, base_name, find, is_verified

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
    ``before_t``, ``settled``: as for ``newest_verified`` and ``output_folders.to_resume_from``.
    """
    if wanted is not None:
        return wanted, find(index, wanted)
    known = newest_verified(index, support, before_t=before_t, keep=first)
    if known is None and first is not None and support.forms and find(index, first) is None:
        return first, None
    if known is None:
        known = output_folders.to_resume_from(index, support, before_t, settled=settled)
    return (None, None) if known is None else (known.path, known)


def newest_verified(
    index: CheckpointIndex, support: ResumeSupport = ANYTHING, *, before_t: float | None = None, keep: str | None = None
) -> KnownCheckpoint | None:
    """Return the resume point, or None. ``before_t``: completed before this run time.

    One in doubt is passed over if there is another one.

    ``keep``: a path from elsewhere that counts as well. Weights alone, such as an export, never replace a whole state,
    unless the framework resumes from weights.
    """
    usable = [
        k
        for k in index.known
        if is_verified(k, keep) and (before_t is None or k.t < before_t) and support.objection(k.shape, k.holds) is None
    ]
    usable = _without_copied_in(usable)
    if not support.weights_are_enough and any(k.holds == "state" for k in usable):
        usable = [k for k in usable if k.holds != "weights"]
    sure = [k for k in usable if not k.doubted]
    return max(sure or usable, key=age_of, default=None)


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
    found = [
        k
        for k in index.known
        if k.unsure and k.left is None and (not k.unknown_make or says_state(base_name(k.path))) and not k.fresh
    ]
    return tuple(sorted(found, key=age_of))


def newest_own(index: CheckpointIndex) -> KnownCheckpoint | None:
    """Return the newest checkpoint that this run wrote, whatever its state."""
    return max((k for k in index.known if k.own), key=age_of, default=None)


def left_behind(index: CheckpointIndex, path: str | None, support: ResumeSupport) -> tuple[str, ...]:
    """Return the run's own verified ones that are newer than ``path``, for a run that goes back to it.

    All of them for a path from elsewhere, and for None (the beginning). Those that a launch cannot be given are left
    out, and the one in doubt: the run may come back to it.
    """
    to = find(index, path)
    since = None if to is None else age_of(to)
    return tuple(
        k.path
        for k in index.known
        if k.own
        and is_verified(k)
        and not k.doubted
        and (since is None or age_of(k) > since)
        and support.objection(k.shape, k.holds) is None
    )


def damaged_after(
    index: CheckpointIndex, good: KnownCheckpoint | None, *, before_t: float | None = None
) -> tuple[KnownCheckpoint, ...]:
    """Return the run's own damaged ones newer than ``good``, not reported and not of the NaN, oldest first."""

    def is_untold(known: KnownCheckpoint) -> bool:
        if known.bad is None or known.damage is None:
            return True
        of_nan = known.damage[0] == "nonfinite" and before_t is not None and known.t >= before_t
        return not known.reported and known.bad == known.damage[1] and known.left is None and not of_nan

    since = (float("-inf"), False, 0, False, 0) if good is None else age_of(good)
    damaged = [k for k in index.known if k.own and k.damage is not None and not k.is_state and is_untold(k)]
    return tuple(sorted((k for k in damaged if age_of(k) > since), key=age_of))


# A trainer that chooses its checkpoint by itself takes the newest file, whether it is whole or not.
#
# Source: scripts that load the newest file of their folder, or always the same one. It was torn by the crash, and each
# restart "from" the whole one before it loaded the torn one and ended.


def in_front(index: CheckpointIndex, path: str | None, before_t: float | None) -> tuple[KnownCheckpoint, ...]:
    """Return the run's own that are newer than ``path`` and damaged, or not from before ``before_t``, oldest first."""
    good = find(index, path)
    found = [
        k
        for k in index.known
        if k.own and k.unclear is None and k.path != path and (good is None or age_of(k) > age_of(good))
        if k.damage is not None or k.bad is not None or (before_t is not None and k.t >= before_t)
    ]
    return tuple(sorted(found, key=age_of))


def start_in_words(path: str | None, step: int | None, front: Sequence[KnownCheckpoint] = ()) -> str:
    """Return what an attempt starts from, as far as it is known. ``front``: what the trainer may take instead."""
    named = "" if path is None else base_name(path) + (f" (step {step})" if step is not None else "")
    if not front:
        return f"from {named}" if named else "from the beginning"
    whole, newest = f"the newest whole one is {named}" if named else "no whole one is known", front[-1]
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


# When a checkpoint is overdue while the training goes on: a full output folder, a save that fails silently.
#
# Source: runs that trained for a night and left no checkpoint. Known false alarms: several files per save and one of
# step 0 (so short distances are ignored, and the longest counts beside the usual one), trainers that save at the end of
# long epochs (so nothing is reported within half an hour, nor within three hours if no distance is known).

MISSING = "missing"
"""Class of the incident (kind ``checkpoint``)."""
GAPS = 7
"""Newest distances remembered: a run may be set to save more often from some step on."""
GAPS_LEARNED = 2
"""Fewer distances are not enough to learn from."""
TOGETHER_S = 30.0
"""Files that come closer together belong to one save."""
LATE = 3.0
"""x the usual distance is late, if it is also late by the longest one."""
LATE_OF_LONGEST = 1.5
"""x the longest remembered distance."""
LEAST_S = 1800.0
"""Nothing is reported before this, however often the run saves."""
UNKNOWN_S = 3 * 3600.0
"""If the usual distance is not known: most runs save at least every 2 to 3 h."""


class SaveClock(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``last``: when (active seconds) this run's newest complete checkpoint came; ``gaps``: seconds between saves."""

    last: float | None = None
    gaps: tuple[float, ...] = ()


def with_save(clock: SaveClock, now: float, start: float) -> SaveClock:
    """Add a complete checkpoint. ``start``: of this attempt, from which the first distance counts."""
    gap = now - max(start, clock.last if clock.last is not None else start)
    return SaveClock(last=now, gaps=(*clock.gaps, gap)[-GAPS:] if gap >= TOGETHER_S else clock.gaps)


def overdue(clock: SaveClock, now: float, start: float) -> str | None:
    """Return a sentence if no checkpoint came for too long, else None. Times in active seconds."""
    waited = now - max(start, clock.last if clock.last is not None else start)
    longest = max(clock.gaps, default=0.0)
    if len(clock.gaps) < GAPS_LEARNED:
        if waited < max(UNKNOWN_S, LATE * longest):
            return None
        return f"no checkpoint for {_long(waited)} of training"
    gaps = sorted(clock.gaps)
    usual = (gaps[(len(gaps) - 1) // 2] + gaps[len(gaps) // 2]) / 2  # the module of medians costs 0.4 MB
    if waited < max(LEAST_S, LATE * usual, LATE_OF_LONGEST * longest):
        return None
    return f"no checkpoint for {_long(waited)}, usually one every {_long(max(usual, longest))}"


def _long(seconds: float) -> str:
    return f"{seconds / 60.0:.0f} min" if seconds < 2 * 3600.0 else f"{seconds / 3600.0:.1f} h"
