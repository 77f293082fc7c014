"""Whether two commands are the same training: one command in two spellings, or one script with other options."""

import os
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ..model.run import RunSpec
from .launch_target import find_target

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


_WITH_VALUE = frozenset({"-W", "-X", "--check-hash-based-pycs"})
"""Options of the interpreter that take the next word as their value."""
_LAST_OPTION = re.compile(r"-[bBdEiIOPqRsSuvx]*([mc])(.*)|-()()")
"""The option after which the words belong to the program: a module, a line of Python, or standard input."""


def training_of(spec: RunSpec) -> Training | None:
    """What the command of a run trains; None if the script cannot be told. ``--a=b`` is ``--a b``, in any order."""
    return training_in(spec.command, Path(spec.cwd), {**os.environ, **spec.env})


def training_in(command: Sequence[str], cwd: Path, env: Mapping[str, str]) -> Training | None:
    """As ``training_of`` for any command."""
    target = find_target(command, cwd, env)
    return None if isinstance(target, str) else _training(target.file, target.args)


def training_run_by(argv: Sequence[str], cwd: Path, env: Mapping[str, str]) -> Training | None:
    """What a Python process itself runs: the script or module right behind the interpreter and its options.

    A file that is named further behind is only given to a program (``pylint train.py``), or run by a child of it.
    """
    at = 1
    while at < len(argv) and argv[at].startswith("-"):
        ends = _LAST_OPTION.fullmatch(argv[at])
        if ends is not None:
            module = ends[2] or next(iter(argv[at + 1 : at + 2]), "")
            after = argv[at + 1 if ends[2] else at + 2 :]
            return None if ends[1] != "m" else _named_first((argv[0], "-m", module, *after), module, cwd, env)
        at += 2 if argv[at] in _WITH_VALUE else 1
    return None if at >= len(argv) else _named_first(argv[at:], argv[at], cwd, env)


def _named_first(words: Sequence[str], first: str, cwd: Path, env: Mapping[str, str]) -> Training | None:
    target = find_target(words, cwd, env)
    return None if isinstance(target, str) or target.word != first else _training(target.file, target.args)


def _training(file: Path, args: Sequence[str]) -> Training:
    places: list[str] = []
    options: list[list[str]] = []
    for word in args:
        if re.match(r"--?[A-Za-z]", word):
            name, equals, value = word.partition("=")
            options.append([_name(name), *([value] if equals else [])])
        elif options:
            options[-1].append(word)
        else:
            places.append(word)
    named = tuple(sorted(tuple(option) for option in options))
    return Training(Path(os.path.realpath(file)), tuple(places), named)


def without_options(training: Training, names: Collection[str]) -> Training:
    """The training without these options, in whatever spelling: ``--a b``, ``--a=b`` and ``a=b``."""
    left_out = {_name(name) for name in names}
    return Training(
        training.script,
        tuple(word for word in training.places if "=" not in word or _name(word.partition("=")[0]) not in left_out),
        tuple(option for option in training.options if option[0] not in left_out),
    )


def options_that_name(placeholder: str, words: Sequence[str]) -> set[str]:
    found: set[str] = set()
    for before, word in zip(("", *words), words, strict=False):
        name, equals, value = word.partition("=")
        if equals and placeholder in value:
            found.add(name)
        elif placeholder in word and before.startswith("-"):
            found.add(before)
    return found


def _name(option: str) -> str:
    return option.replace("_", "-")


def is_same(known: RunSpec, spec: RunSpec) -> bool:
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
    folder = _from_cwd(known.output_dir, known.cwd)
    if _OF_ONE_LAUNCH.search(folder):
        return False
    gone = {word for group in (before.places, *before.options) for word in group} - {
        word for group in (now.places, *now.options) for word in group
    }
    return not any(len(word.strip("-./")) > 1 and word.strip("-./") in folder for word in gone)


def is_of_one_launch(folder: str, cwd: str) -> bool:
    """Whether a folder was made for one launch, by a date or a number in its path: the next launch makes another."""
    return _OF_ONE_LAUNCH.search(_from_cwd(folder, cwd)) is not None


def _from_cwd(folder: str, cwd: str) -> str:
    return os.path.relpath(os.path.realpath(folder), os.path.realpath(cwd))
