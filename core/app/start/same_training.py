"""Whether two commands are the same training: one command in two spellings, or one script with other options."""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ...model.run import RunSpec
from ...source.launch_target import find_target

_OF_ONE_LAUNCH = re.compile(
    r"\d{4}[-_.]?\d\d[-_.]?\d\d|\d\d[-_:]\d\d[-_:]\d\d|\d{8,}|(?:^|/)(?:version|exp|run|train|lightning_logs|trial)[-_]?\d+",
    re.IGNORECASE,
)
"""Parts of a folder's path that a trainer makes for one launch: a date, a time, a number."""


class Training(NamedTuple):
    """``options``: name and values of each, as often as it is given; ``places``: the words before the first option."""

    script: Path
    places: tuple[str, ...]
    options: tuple[tuple[str, ...], ...]


def training_of(spec: RunSpec) -> Training | None:
    """What the command of a run trains; None if the script cannot be told. ``--a=b`` is ``--a b``, in any order."""
    target = find_target(spec.command, Path(spec.cwd), {**os.environ, **spec.env})
    if isinstance(target, str):
        return None
    places: list[str] = []
    options: list[list[str]] = []
    for word in target.args:
        if re.match(r"--?[A-Za-z]", word):
            name, equals, value = word.partition("=")
            options.append([name.replace("_", "-"), *([value] if equals else [])])
        elif options:
            options[-1].append(word)
        else:
            places.append(word)
    named = tuple(sorted(tuple(option) for option in options))
    return Training(Path(os.path.realpath(target.file)), tuple(places), named)


def is_same(known: RunSpec, spec: RunSpec) -> bool:
    """Whether two runs of one working folder have the same command, in whatever spelling."""
    if known.command == spec.command:
        return True
    if len(known.command) != len(spec.command) and not _may_be_same(known.command, spec.command):
        return False
    first, second = training_of(known), training_of(spec)
    return first is not None and first == second


def _may_be_same(one: Sequence[str], other: Sequence[str]) -> bool:
    """A cheap look before files are read: both name a file of the same name, or one of them is a shell line."""
    scripts = [{Path(word.strip("\"'")).name for word in " ".join(words).split()} for words in (one, other)]
    return any(name.endswith((".py", ".sh")) for name in scripts[0] & scripts[1])


def may_save_alike(known: RunSpec, spec: RunSpec) -> bool:
    """Whether the script, started with other options, may save where it saved before.

    Not if the folder was made for that launch (by a date or a number in its path), or if its path has a value that the
    command does not have any more.
    """
    before, now = training_of(known), training_of(spec)
    if known.output_dir is None or before is None or now is None or before.script != now.script:
        return False
    folder = os.path.relpath(os.path.realpath(known.output_dir), os.path.realpath(known.cwd))
    if _OF_ONE_LAUNCH.search(folder):
        return False
    gone = {word for group in (before.places, *before.options) for word in group} - {
        word for group in (now.places, *now.options) for word in group
    }
    return not any(len(word.strip("-./")) > 1 and word.strip("-./") in folder for word in gone)
