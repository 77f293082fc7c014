"""The resume point among the known checkpoints: the newest verified one from before the failure.

Files from before this run are never resumed from automatically: an old directory is not this training. Neither are
those that the run left behind when it went back to an older one, nor those that cannot be passed to a launch.
"""

import re
from collections.abc import Iterable, Sequence

import msgspec

from ...model.other_files import says_state
from ...model.resume import ResumeSupport
from ..text.lines import peel
from . import output_folders
from .checkpoint_index import CheckpointIndex, KnownCheckpoint, age_of, base_name, find, is_verified

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
    index: CheckpointIndex,
    support: ResumeSupport = ANYTHING,
    *,
    before_t: float | None = None,
    keep: str | None = None,
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
    sure = [k for k in usable if k.path not in index.doubt.paths]
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
        and k.path not in index.doubt.paths
        and (since is None or age_of(k) > since)
        and support.objection(k.shape, k.holds) is None
    )


def damaged_after(
    index: CheckpointIndex, good: KnownCheckpoint | None, *, before_t: float | None = None
) -> tuple[KnownCheckpoint, ...]:
    """Return the run's own damaged ones that are newer than ``good`` (None = all) and not reported, oldest first.

    Those that count as state that is not understood are not among them, nor what was saved since a NaN that the run
    goes back from (``before_t``): the NaN is told of.
    """
    since = (float("-inf"), False, 0, False, 0) if good is None else age_of(good)
    damaged = [k for k in index.known if k.own and k.damage is not None and not k.is_state and _is_untold(k, before_t)]
    return tuple(sorted((k for k in damaged if age_of(k) > since), key=age_of))


def _is_untold(known: KnownCheckpoint, before_t: float | None) -> bool:
    if known.bad is None or known.damage is None:
        return True
    of_nan = known.damage[0] == "nonfinite" and before_t is not None and known.t >= before_t
    return not known.reported and known.bad == known.damage[1] and known.left is None and not of_nan


# A way to resume that was concluded from the trainer's source: what its first resumes have shown.
#
# Until one was taken, the state that it resumes from is copied aside before each launch, so that a wrong conclusion
# costs time and no state. Source: trainers have options that look like a resume and load weights only, or nothing at
# all.


class FoundResume(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``proven``: a resume by it was taken. ``kept``: the checkpoint (path, mtime) copied last, to ``folder``.

    ``copies``: all folders with copies.
    """

    proven: bool = False
    kept: tuple[str, float | None] | None = None
    folder: str = ""
    copies: tuple[str, ...] = ()


# Whether a trainer ended because it does not know the option that a resume added to its command.
#
# Each parser says so in its own words, and scripts that parse by hand in any: what they share is that the option is
# named where the end is explained. A line that repeats a command, lists the options, logs the settings or tells how to
# use one names it, too, and proves nothing. docopt prints the synopsis alone: an option that is not in it is not
# known.
#
# Sources: argparse, click, typer, absl and gflags, fire, tyro, docopt, getopt, optparse, hydra, OmegaConf,
# jsonargparse, simple-parsing, ``HfArgumentParser``, pydantic, dataclasses. Known false alarm: an error that quotes the
# option for another reason.

BY_HAND = re.compile(r"(?:Type|Attribute|Key)Error\b")
"""What a script raises for a name that it does not know, if it has no parser. The class is that of a bug."""
LAST_LINES = 8
"""Lines from the end in which a parser says what it refuses, if nothing else shows a cause: tyro's box has five."""
_BOX = " \t│|┃╭╮╰╯─━"
_OPTION = r"--?[A-Za-z][\w-]*(?:[=\s'\",]+[^-\s'\",]\S*)?"
_BEFORE_IN_A_COMMAND = re.compile(rf"(?:^|[\s'\"\[(])(?:[\w./-]+\.(?:py|sh)|{_OPTION})['\",\s]+['\"]?$")
_ADVISED = re.compile(
    r"(?i:\b(?:use|using|pass|passing|try|add|adding|specify|set|provide|give|with|via|without)"
    r"(?: the)?(?: (?:flag|option|argument))? ['\"`]?)$"
)
_OF_A_COMMAND = re.compile(r"^\++ |\bCommand '|\bnon-zero exit status\b")
_VALUE = r"\s*[:=]\s*(?:['\"\d\[{-]|None|True|False|null|true|false)"
_USAGE = re.compile(r"\s*[Uu]sage:(?:\s|$)")
_SYNOPSIS = re.compile(r"\s|$|\S[\w ]{0,80}:$")
_QUIET = frozenset({"debug", "info", "warning"})


def refused(names: Sequence[str], *, cause: str, below: Sequence[str], last: Sequence[str], class_: str) -> str:
    """The name among ``names`` that the end of the log says is not known; "" if it says that of none.

    ``names``: of the option. ``cause``: the line that explains the end, ``below``: the lines after it; ``last``: the
    last lines of the log, which count if there is no cause. ``class_``: of the failure.
    """
    if class_ == "config_error":
        named = [name for name in names if _alone(name, below) or speaks_of(name, (cause, *below))]
    elif class_ == "unknown":
        told = [line for line in last if line.strip(_BOX)][-LAST_LINES:]
        ended = [line for line in told if peel(line).level not in _QUIET]
        named = [name for name in names if speaks_of(name, ended)]
    elif class_ == "code_bug" and BY_HAND.match(cause):
        named = [name for name in names if speaks_of(name, (cause,))]
    else:
        return ""
    if not named and class_ != "code_bug":
        named = [name for name in names[:1] if name.startswith("-") and _is_not_in_the_synopsis(name, last)]
    return named[0] if named else ""


def speaks_of(option: str, lines: Iterable[str]) -> bool:
    """Whether one of the lines names the option, as it is written or in quotes, and is no list of what there is."""
    return any(_names(option, line) for line in lines)


def _names(option: str, line: str) -> bool:
    if _OF_A_COMMAND.search(line) or _USAGE.match(line):
        return False
    written = rf"(?<![\w\[-]){re.escape(option)}(?![\w-])" if option.startswith("-") else None
    quoted = rf"""['"`]\+*(?:[\w.]+\.)?{re.escape(option.lstrip("-"))}['"`](?!{_VALUE})"""
    for found in re.finditer(quoted if written is None else f"{written}|{quoted}", line):
        before = line[: found.start()]
        listed = before.isspace() or (before.strip() and not before.strip(_BOX) and before[-2:] == "  ")
        if not (listed or _BEFORE_IN_A_COMMAND.search(before) or _ADVISED.search(before)):
            return True
    return False


def _alone(option: str, lines: Iterable[str]) -> bool:
    """pydantic names a field that it does not know on a line of its own."""
    name = re.compile(rf"(?:[\w.]+\.)?{re.escape(option.lstrip('-'))}$")
    return any(name.match(line.strip()) is not None for line in lines)


def _is_not_in_the_synopsis(option: str, last: Sequence[str]) -> bool:
    """Whether the log ends with a synopsis, and nothing but it, which has options and not this one."""
    at = max((number for number, line in enumerate(last) if _USAGE.match(line)), default=None)
    if at is None or not all(_SYNOPSIS.match(line) for line in last[at + 1 :]):
        return False
    return re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", "\n".join(last[at:])) is None
